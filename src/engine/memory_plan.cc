#include "engine/memory_plan.h"

#include <algorithm>
#include <cstdio>

#include "base/checked_math.h"
#include "model/kv_store.h"

namespace pagoda {

namespace {

constexpr uint64_t kMinReserve = 512u << 20;
constexpr int32_t kDefaultBatch = 16;
constexpr int32_t kDefaultContextCap = 32768;
constexpr int32_t kMaxLogitRows = 64;  // one pass over the output matrix for up to 64 rows

// Blocks that one sequence of `context` tokens can hold in a group: all of them, or those a window plus one step reaches.
int32_t blocks_per_sequence(const KvGroup& group, int32_t context, int32_t block_tokens, int32_t step_tokens) {
  const int32_t all = ceil_div(context, block_tokens);
  if (group.window == 0) return all;
  return std::min(all, ceil_div(group.window + step_tokens, block_tokens) + 2);
}

class Planner {
 public:
  Planner(const ModelConfig& config, const KernelTable& kernels, const MemoryRequest& request)
      : config_(config),
        kernels_(kernels),
        request_(request),
        groups_(kv_groups(config)),
        layout_(kv_layout(config, request.kv_type, request.block_tokens)) {}

  Result<MemoryPlan> run() {
    MemoryPlan plan;
    plan.max_batch = request_.max_batch > 0 ? request_.max_batch : kDefaultBatch;
    plan.weight_bytes = request_.weight_bytes;
    plan.free_bytes = request_.free_bytes;
    const int32_t wanted = request_.context > 0 ? request_.context : std::min(config_.context_length, kDefaultContextCap);
    plan.context = wanted;
    set_limits(plan);
    const uint64_t budget = kv_budget(plan);
    while (request_.context == 0 && plan.context > request_.block_tokens && sequence_bytes(plan) > budget) {
      plan.context = round_up(plan.context / 2, request_.block_tokens);
      set_limits(plan);
    }
    if (sequence_bytes(plan) > budget) return no_room(plan, budget);
    size_pools(plan, budget);
    return plan;
  }

 private:
  void set_limits(MemoryPlan& plan) const {
    const int32_t step_tokens = std::max(request_.prefill_chunk, plan.max_batch);
    plan.limits = {.max_rows = step_tokens,
                   .max_sequences = plan.max_batch,
                   .max_context = plan.context,
                   .max_logit_rows = std::min(kMaxLogitRows, std::max(plan.max_batch, 1))};
    plan.activation_bytes = Decoder::buffer_bytes(config_, plan.limits, layout_, kernels_, request_.num_threads);
  }

  uint64_t kv_budget(const MemoryPlan& plan) const {
    if (request_.kv_budget_bytes > 0) return request_.kv_budget_bytes;
    const uint64_t reserve = std::max(kMinReserve, request_.free_bytes / 20);
    const uint64_t used = plan.weight_bytes + plan.activation_bytes + reserve;
    return request_.free_bytes > used ? request_.free_bytes - used : 0;
  }

  uint64_t group_block_bytes(const KvGroup& group) const { return layout_.block_bytes() * group.layers.size(); }

  int32_t sequence_blocks(const KvGroup& group, const MemoryPlan& plan) const {
    return blocks_per_sequence(group, plan.context, request_.block_tokens, plan.limits.max_rows);
  }

  uint64_t sequence_bytes(const MemoryPlan& plan) const {
    uint64_t bytes = 0;
    for (const KvGroup& g : groups_) bytes += group_block_bytes(g) * sequence_blocks(g, plan);
    return bytes;
  }

  void size_pools(MemoryPlan& plan, uint64_t budget) const {
    const uint64_t one = sequence_bytes(plan);
    // Sequences' worth of blocks, in 1/16 steps so that a budget of two and a half sequences is not wasted.
    const uint64_t sixteenths = std::min<uint64_t>(budget * 16 / std::max<uint64_t>(one, 1), 16ull * plan.max_batch);
    plan.kv.block_tokens = request_.block_tokens;
    for (const KvGroup& g : groups_) {
      const uint64_t blocks = std::max<uint64_t>(sequence_blocks(g, plan) * sixteenths / 16, 1);
      plan.kv.groups.push_back({g.window, static_cast<int32_t>(std::min<uint64_t>(blocks, INT32_MAX))});
      plan.kv_bytes += group_block_bytes(g) * blocks;
    }
  }

  Status no_room(const MemoryPlan& plan, uint64_t budget) const {
    return resource_exhausted("one sequence of " + std::to_string(plan.context) + " tokens needs " +
                              format_bytes(sequence_bytes(plan)) + " of KV cache, but of " + format_bytes(plan.free_bytes) +
                              " free memory " + format_bytes(budget) + " are left beside " + format_bytes(plan.weight_bytes) +
                              " of weights and " + format_bytes(plan.activation_bytes) +
                              " of activations; lower --ctx, --max-batch or --prefill-chunk, or use a 16-bit --kv-type");
  }

  const ModelConfig& config_;
  const KernelTable& kernels_;
  const MemoryRequest& request_;
  std::vector<KvGroup> groups_;
  KvLayout layout_;
};

}  // namespace

Result<MemoryPlan> plan_memory(const ModelConfig& config, const KernelTable& kernels, const MemoryRequest& request) {
  return Planner(config, kernels, request).run();
}

std::string format_bytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024.0 && unit < 4) {
    value /= 1024.0;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

std::string MemoryPlan::to_string() const {
  std::string pools;
  for (const KvGroupConfig& g : kv.groups) {
    pools += (pools.empty() ? "" : " + ") + std::to_string(g.num_blocks) + " blocks" +
             (g.window > 0 ? " (window " + std::to_string(g.window) + ")" : "");
  }
  return "weights      " + format_bytes(weight_bytes) + "\nKV cache     " + format_bytes(kv_bytes) + "  (" + pools + " of " +
         std::to_string(kv.block_tokens) + " tokens)\nactivations  " + format_bytes(activation_bytes) + "\ntotal        " +
         format_bytes(total_bytes()) + " of " + format_bytes(free_bytes) + " free\ncontext      " + std::to_string(context) +
         " tokens, batch of up to " + std::to_string(max_batch) + " sequences, steps of up to " +
         std::to_string(limits.max_rows) + " tokens\n";
}

}  // namespace pagoda
