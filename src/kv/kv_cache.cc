#include "kv/kv_cache.h"

#include <algorithm>

#include "base/check.h"

namespace pagoda {
namespace {

std::vector<int32_t> pool_sizes(const KvConfig& config) {
  std::vector<int32_t> sizes;
  for (const KvGroupConfig& group : config.groups) sizes.push_back(group.num_blocks);
  return sizes;
}

// Full groups need a node per cached block at most. Where every group is windowed, nodes without blocks link the cached
// ones; 8 nodes a block bound what they take (about 300 bytes each, far below a block's own memory).
int32_t max_index_nodes(const KvConfig& config) {
  int64_t num_blocks = 0;
  for (const KvGroupConfig& group : config.groups) num_blocks += group.num_blocks;
  return static_cast<int32_t>(std::min<int64_t>(8 * num_blocks + 64, INT32_MAX / 64));
}

}  // namespace

KvCache::KvCache(KvConfig config)
    : config_(std::move(config)), index_(config_.block_tokens, pool_sizes(config_), max_index_nodes(config_)) {
  PAGODA_CHECK(config_.block_tokens >= 1 && !config_.groups.empty());
  for (const KvGroupConfig& group : config_.groups) {
    PAGODA_CHECK(group.num_blocks >= 1 && group.window >= 0);
    pools_.emplace_back(group.num_blocks);
  }
}

std::optional<BlockRef> KvCache::try_allocate(int32_t group) {
  std::optional<BlockPool::Allocation> allocation = pools_[group].try_allocate();
  if (!allocation) return std::nullopt;
  if (allocation->was_cached) index_.erase_block(group, allocation->block.id());
  return std::move(allocation->block);
}

int32_t KvCache::first_visible_block(int32_t group, int32_t position) const {
  const int32_t window = config_.groups[group].window;
  return window == 0 ? 0 : std::max(position - window + 1, 0) / config_.block_tokens;
}

int32_t KvCache::max_blocks(int32_t group, int64_t num_tokens, int32_t step_tokens) const {
  const int64_t bt = config_.block_tokens;
  const int64_t all = (num_tokens + bt - 1) / bt;
  const int64_t window = config_.groups[group].window;
  if (window == 0) return static_cast<int32_t>(std::min<int64_t>(all, INT32_MAX));
  // The rows of a step see window - 1 tokens before the first of them; n tokens touch (n - 2) / bt + 2 blocks where
  // they lie worst.
  const int64_t reach = window - 1 + std::max(step_tokens, 1);
  const int64_t most = reach <= 1 ? 1 : (reach - 2) / bt + 2;
  return static_cast<int32_t>(std::min<int64_t>({all, most, INT32_MAX}));
}

void KvCache::match_prefix(std::string_view key, std::span<const int32_t> tokens, int32_t max_tokens,
                           PrefixMatch& match) const {
  match.num_tokens = 0;
  match.nodes.clear();
  const int32_t bt = config_.block_tokens;
  const int32_t limit = std::min<int32_t>(max_tokens, static_cast<int32_t>(tokens.size())) / bt;
  int32_t node = index_.find_root(key);
  if (node == PrefixIndex::kNone) return;
  // run[g]: blocks in a row that group g has, counted back from the current depth.
  std::vector<int32_t> run(num_groups(), 0);
  int32_t matched = 0;
  for (int32_t depth = 1; depth <= limit; ++depth) {
    node = index_.find_child(node, tokens.subspan(size_t{1} * (depth - 1) * bt, bt));
    if (node == PrefixIndex::kNone) break;
    match.nodes.push_back(node);
    bool is_usable = true;
    for (int32_t g = 0; g < num_groups(); ++g) {
      run[g] = index_.block(node, g) == PrefixIndex::kNone ? 0 : run[g] + 1;
      is_usable = is_usable && depth - run[g] <= first_visible_block(g, depth * bt);
    }
    if (is_usable) matched = depth;
  }
  match.nodes.resize(matched);
  match.num_tokens = matched * bt;
}

}  // namespace pagoda
