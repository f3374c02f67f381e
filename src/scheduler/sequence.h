#pragma once
// Sequence: one continuation of one request as the scheduler keeps it: tokens it has, tokens computed, blocks held.
// There is no phase: what separates num_computed from the number of tokens is the work to do.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kv/block_tables.h"
#include "pagoda/request.h"

namespace pagoda {

using SequenceId = int64_t;

struct Sequence {
  Sequence(KvCache& cache, SequenceId sequence_id) : id(sequence_id), tables(cache) {}

  const SequenceId id;  ///< in order of arrival
  uint64_t request_id = 0;
  int32_t choice_idx = 0;
  SequenceId first_choice_id = 0;  ///< the sequence of choice 0 of the same request
  std::shared_ptr<const SamplingParams> sampling;
  std::string cache_key;

  std::vector<int32_t> tokens;  ///< prompt, then generated
  int32_t num_prompt = 0;
  int32_t max_length = 0;         ///< tokens at which it ends with kLength
  int32_t num_computed = 0;       ///< tokens whose keys and values are in the blocks
  int32_t num_cached = 0;         ///< of the prompt, found in the prefix index when it was first admitted
  int32_t num_prompt_scored = 0;  ///< rows whose prompt logprobs were delivered
  bool is_prompt_done = false;    ///< the whole prompt was computed at least once
  bool was_admitted = false;

  int32_t slot = -1;        ///< -1: waiting
  int32_t num_granted = 0;  ///< tokens handed out by the step being planned
  BlockTables tables;

  int32_t num_tokens() const { return static_cast<int32_t>(tokens.size()); }
  int32_t num_generated() const { return num_tokens() - num_prompt; }
  int32_t num_wanted() const { return num_tokens() - num_computed; }
  /// Rows whose logits score a prompt token: all but the prompt's last.
  int32_t num_prompt_rows() const { return choice_idx == 0 && sampling->num_prompt_logprobs >= 0 ? num_prompt - 1 : 0; }
};

}  // namespace pagoda
