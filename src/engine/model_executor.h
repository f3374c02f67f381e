#pragma once
// ModelExecutor: steps 7 to 9 of a request's life: packs a ragged batch, runs the decoder, samples. Keeps the block tables
// and sampler state of each slot; a plan brings only the changes.
//
// Thread rule: engine thread only; the team works inside.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/executor.h"
#include "model/decoder.h"
#include "sampling/sampler.h"

namespace pagoda {

class ModelExecutor : public Executor {
 public:
  /// Decoder and team must outlive it. `end_ids`: the tokenizer's end-of-generation tokens.
  ModelExecutor(std::unique_ptr<Decoder> decoder, KvStore kv, std::vector<int32_t> end_ids, const ModelConfig& config,
                const KernelTable& kernels, ThreadTeam& team);

  Status step(const StepPlan& plan, StepResult& result) override;
  int32_t vocab_size() const override { return vocab_size_; }
  std::span<const int32_t> end_of_generation_ids() const override { return end_ids_; }
  /// Called with the raw logits that each token is drawn from (reproducibility tests hash them). None by default.
  void set_logits_observer(std::function<void(int32_t slot, int64_t position, std::span<const float> logits)> observer) {
    observer_ = std::move(observer);
  }

 private:
  struct Slot {
    std::vector<std::vector<int32_t>> tables;    // [group][block]
    std::vector<const int32_t*> table_pointers;  // [group]
    std::shared_ptr<const SamplingParams> sampling;
    std::unique_ptr<SequenceSampler> sampler;
    std::vector<int32_t> tokens;                 // as started: names the next token of each prompt row
  };
  /// One row whose logits are wanted.
  struct RowJob {
    int32_t entry = 0;
    int32_t row = 0;          // in the batch
    int32_t prompt_row = -1;  // index among the entry's prompt rows; -1: the sampled row
  };

  void apply_changes(const StepPlan& plan);
  void start(const SequenceStart& start);
  StepBatch pack(const StepPlan& plan);
  void finish_rows(const StepPlan& plan, StepResult& result);
  void finish_row(const StepPlan& plan, const RowJob& job, std::span<const float> logits, SamplerScratch& scratch,
                  StepResult& result);

  std::unique_ptr<Decoder> decoder_;
  KvStore kv_;
  const std::vector<int32_t> end_ids_;
  const int32_t vocab_size_;
  const KernelTable& kernels_;
  ThreadTeam& team_;
  std::vector<Slot> slots_;
  std::vector<StepSequence> sequences_;
  std::vector<RowJob> jobs_;
  std::vector<int32_t> rows_;
  std::vector<SamplerScratch> scratch_;  // one a team member
  std::function<void(int32_t, int64_t, std::span<const float>)> observer_;
};

}  // namespace pagoda
