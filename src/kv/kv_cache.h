#pragma once
// KvCache: the book-keeping of the paged KV cache: a block pool per KV group and the prefix index over all of them.
// Ids and reference counts only; the tensors behind the ids are the model's.
//
// Thread rule: one owner thread. Must outlive the BlockTables made from it.

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kv/block_pool.h"
#include "kv/kv_config.h"
#include "kv/prefix_index.h"

namespace pagoda {

/// Blocks that hold the first `num_tokens` tokens of some list, as nodes of the prefix index from the root's child
/// down. Valid until the next change of the cache.
struct PrefixMatch {
  int32_t num_tokens = 0;
  std::vector<int32_t> nodes;  ///< num_tokens / block_tokens of them
};

class KvCache {
 public:
  /// `config`: block_tokens >= 1, at least one group, pools not empty.
  explicit KvCache(KvConfig config);
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  const KvConfig& config() const { return config_; }
  int32_t num_groups() const { return static_cast<int32_t>(pools_.size()); }
  const BlockPool& pool(int32_t group) const { return pools_[group]; }
  const PrefixIndex& index() const { return index_; }

  /// A block of the group, taken from the prefix index if none is free; nullopt when every block is held.
  std::optional<BlockRef> try_allocate(int32_t group);

  /// The longest cached prefix of `tokens` with at most `max_tokens` tokens, in whole blocks: full groups must have all
  /// its blocks, windowed groups those that the row after it can see. `match` is overwritten (its memory is reused).
  void match_prefix(std::string_view key, std::span<const int32_t> tokens, int32_t max_tokens,
                    PrefixMatch& match) const;

  /// First block of `group` that a row at `position` can see.
  int32_t first_visible_block(int32_t group, int32_t position) const;
  /// The most blocks of `group` that `num_tokens` tokens can hold at a time when up to `step_tokens` are computed at
  /// once.
  int32_t max_blocks(int32_t group, int64_t num_tokens, int32_t step_tokens) const;

 private:
  friend class BlockTables;

  const KvConfig config_;
  std::deque<BlockPool> pools_;  // a deque: BlockRefs point at pools
  PrefixIndex index_;
};

}  // namespace pagoda
