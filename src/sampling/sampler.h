#pragma once
// Sampler: logits of one row to one token, in the published order (see SamplingParams), with draws keyed by
// (seed, choice, position). A row's result depends on its own logits, parameters and history alone.
//
// What is exact: tokens are ranked by adjusted logit (after the penalties), equal ones by lowest id, so top_k 1 is
// greedy. min-p, top-k and top-p each work on what the one before left, renormalised. top-p keeps the shortest run of
// best-ranked tokens whose probability reaches top_p. The draw walks the kept tokens by rising id; its weights are
// integers (see selection.h), so no sum depends on an order, an instruction set or a thread.
//
// Thread rule: one SequenceSampler per sequence; different ones may run on different threads.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/vector_ops.h"
#include "pagoda/request.h"

namespace pagoda {

/// What sample() gives when nothing can be drawn. The sequence cannot go on; others are not touched.
inline constexpr int32_t kNoToken = -1;

/// The lowest log-probability reported: also for a token the model gave no probability at all, so that no answer ever
/// carries an infinity (OpenAI's API uses the same number for that).
inline constexpr float kMinLogprob = -9999.0f;

/// Reused buffers of one thread.
class SamplerScratch {
 public:
  explicit SamplerScratch(int32_t vocab_size);
  std::span<float> work() { return work_; }          // [vocab_size] adjusted logits
  std::span<float> relative() { return relative_; }  // [vocab_size] probabilities relative to the largest
  std::vector<int32_t>& candidates() { return candidates_; }

 private:
  std::vector<float> work_;
  std::vector<float> relative_;
  std::vector<int32_t> candidates_;
};

class SequenceSampler {
 public:
  /// `end_ids`: the model's end-of-generation tokens (masked by min_tokens). `params` have passed validate().
  SequenceSampler(std::shared_ptr<const SamplingParams> params, int32_t choice_idx, std::span<const int32_t> end_ids,
                  int32_t vocab_size);

  /// Starts (or restarts after a preemption) with this history; penalties count from it.
  void reset(std::span<const int32_t> tokens, int32_t num_prompt_tokens);

  /// Draws the token for absolute position `position` from raw `logits` [vocab_size] (not modified) and records it.
  /// kNoToken, and nothing recorded, when a logit is NaN or +infinity or when every token is masked.
  int32_t sample(std::span<const float> logits, int64_t position, SamplerScratch& scratch, const VectorKernels& ops);

 private:
  struct Count {
    int32_t id;
    int32_t in_output;
    bool in_prompt;
  };

  bool is_min_tokens_active() const { return num_generated_ < params_->min_tokens; }
  bool has_adjustments() const;
  void mask_ends(std::span<float> work) const;
  void apply_penalties(std::span<float> work) const;
  int32_t draw(std::span<const float> adjusted, float max, int64_t position, SamplerScratch& scratch,
               const VectorKernels& ops) const;
  void count(int32_t id, bool in_prompt);

  std::shared_ptr<const SamplingParams> params_;
  uint64_t choice_idx_;
  std::vector<int32_t> end_ids_;  // end-of-generation and stop ids inside the vocabulary
  int32_t vocab_size_;
  bool has_penalties_;
  int32_t num_generated_ = 0;
  std::vector<Count> counts_;      // only when a penalty is on, in order of first use
  std::vector<int32_t> count_of_;  // id -> index into counts_ or -1
};

/// Log-probabilities of raw logits: the token's and the `num_top` best (best first, ties by lowest id). All are finite
/// and in [kMinLogprob, 0]; tokens of no probability are left out of the top. Logits with a NaN or +infinity, or a
/// token outside the vocabulary, give kMinLogprob and no top.
TokenLogprobs compute_logprobs(std::span<const float> logits, int32_t token, int32_t num_top, const VectorKernels& ops);

}  // namespace pagoda
