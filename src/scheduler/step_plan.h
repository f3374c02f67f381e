#pragma once
// What one engine step does, as flat plain data: small enough to broadcast to other ranks, complete enough to replay.
// The scheduler writes it, the executor obeys it. The executor keeps the block tables; a plan carries only changes.

#include <cstdint>
#include <memory>
#include <vector>

#include "pagoda/request.h"

namespace pagoda {

/// A sequence takes a slot. Sent once when it is admitted (again after a preemption).
struct SequenceStart {
  int32_t slot = 0;
  std::shared_ptr<const SamplingParams> sampling;
  int32_t choice_idx = 0;
  int32_t num_prompt_tokens = 0;
  std::vector<int32_t> tokens;  ///< prompt, then tokens generated before a preemption
};

/// Consecutive tokens of one sequence to compute.
struct StepEntry {
  int32_t slot = 0;
  int32_t first_position = 0;   ///< position of the first token
  int32_t token_begin = 0;      ///< index into StepPlan::tokens
  int32_t num_tokens = 0;       ///< >= 1
  bool is_sampled = false;      ///< draw the next token from the last row's logits
  int32_t num_prompt_rows = 0;  ///< prompt logprobs wanted from the first this-many rows: row i scores the token at
                                ///< first_position + i + 1 (known to the executor from SequenceStart)
};

/// Block ids that became part of a slot's table: blocks [first_block, first_block + num_blocks) of `group`.
struct BlockTableDelta {
  int32_t slot = 0;
  int32_t group = 0;
  int32_t first_block = 0;
  int32_t num_blocks = 0;
  int32_t ids_begin = 0;        ///< index into StepPlan::block_ids
};

struct StepPlan {
  uint64_t step_id = 0;
  std::vector<int32_t> ended_slots;     ///< slots whose sequence left (finished or preempted); handled before starts
  std::vector<SequenceStart> starts;
  std::vector<BlockTableDelta> deltas;
  std::vector<int32_t> block_ids;
  std::vector<StepEntry> entries;
  std::vector<int32_t> tokens;

  bool empty() const { return entries.empty(); }
  void clear();                         ///< keeps capacity
};

/// What came of one entry, in plan order.
struct StepOutcome {
  int32_t sampled_id = -1;              ///< -1: the entry was not sampled
  TokenLogprobs logprobs;               ///< filled when the request wants them
  std::vector<TokenLogprobs> prompt_logprobs;  ///< num_prompt_rows entries
};

struct StepResult {
  std::vector<StepOutcome> outcomes;
};

}  // namespace pagoda
