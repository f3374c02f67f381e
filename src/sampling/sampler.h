#pragma once
// Sampler: logits of one row to one token, in the published order (see SamplingParams), with draws keyed by
// (seed, choice, position). A row's result depends on its own logits, parameters and history alone.
//
// Thread rule: one SequenceSampler per sequence; different ones may run on different threads.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/vector_ops.h"
#include "pagoda/request.h"

namespace pagoda {

/// Reused buffers of one thread.
class SamplerScratch {
 public:
  explicit SamplerScratch(int32_t vocab_size);
  std::span<float> work() { return work_; }
  std::vector<int32_t>& candidates() { return candidates_; }

 private:
  std::vector<float> work_;
  std::vector<int32_t> candidates_;
};

class SequenceSampler {
 public:
  /// `end_ids`: the model's end-of-generation tokens (masked by min_tokens).
  SequenceSampler(std::shared_ptr<const SamplingParams> params, int32_t choice_idx, std::span<const int32_t> end_ids,
                  int32_t vocab_size);

  /// Starts (or restarts after a preemption) with this history; penalties count from it.
  void reset(std::span<const int32_t> tokens, int32_t num_prompt_tokens);

  /// Draws the token for absolute position `position` from raw `logits` [vocab_size] (not modified) and records it.
  int32_t sample(std::span<const float> logits, int64_t position, SamplerScratch& scratch, const VectorKernels& ops);

 private:
  std::shared_ptr<const SamplingParams> params_;
  uint64_t choice_idx_;
  std::vector<int32_t> end_ids_;
  int32_t vocab_size_;
  int32_t num_generated_ = 0;
  struct Count {
    int32_t id;
    int32_t in_output;
    bool in_prompt;
  };
  std::vector<Count> counts_;             // only when a penalty is on, in order of first use
  std::vector<int32_t> count_of_;         // id -> index into counts_ or -1
};

/// Log-probabilities of raw logits: the token's and the `num_top` best (best first, ties by lowest id).
TokenLogprobs compute_logprobs(std::span<const float> logits, int32_t token, int32_t num_top, const VectorKernels& ops);

}  // namespace pagoda
