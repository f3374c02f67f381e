#pragma once
// MemoryPlan: how much memory the engine will take, decided before anything is allocated, and the context, batch and KV
// pools that fit. The same numbers are printed, enforced and tested.
//
// Rules, for what the user leaves open:
//  - free memory = MemAvailable or what the control group leaves, less a reserve of 512 MiB or 5 %, whichever is more;
//  - context = the trained length, at most 32768, or what the KV budget holds for one sequence if that is less;
//  - batch = 16 sequences;
//  - KV pools = room for the whole batch at full context, or all that is free if that is less, but always room for one
//    sequence at full context.

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"
#include "kv/kv_config.h"
#include "model/decoder.h"
#include "model/model_config.h"
#include "pagoda/status.h"

namespace pagoda {

struct MemoryRequest {
  uint64_t weight_bytes = 0;
  uint64_t free_bytes = 0;     ///< before the weights are loaded
  KvType kv_type = KvType::kF16;
  int32_t block_tokens = 16;
  int32_t context = 0;         ///< 0: by rule
  int32_t max_batch = 0;       ///< 0: by rule
  int32_t prefill_chunk = 512;
  uint64_t kv_budget_bytes = 0;///< 0: by rule
  int num_threads = 1;
};

struct MemoryPlan {
  int32_t context = 0;
  int32_t max_batch = 0;
  DecoderLimits limits;
  KvConfig kv;
  uint64_t weight_bytes = 0;
  uint64_t kv_bytes = 0;
  uint64_t activation_bytes = 0;  ///< activations, logits and attention scratch of the largest step
  uint64_t free_bytes = 0;
  uint64_t total_bytes() const { return weight_bytes + kv_bytes + activation_bytes; }
  /// The plan for a person, a line each.
  std::string to_string() const;
};

/// kResourceExhausted with needed and free bytes, and what to lower, when even the smallest plan does not fit.
Result<MemoryPlan> plan_memory(const ModelConfig& config, const KernelTable& kernels, const MemoryRequest& request);

/// "1.5 GiB".
std::string format_bytes(uint64_t bytes);

}  // namespace pagoda
