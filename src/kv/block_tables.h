#pragma once
// BlockTables: the blocks that one list of tokens holds, a table per KV group: "room for n more tokens", "release what
// the window left behind", "publish", "release all". Table entries are absolute: entry b covers tokens [b *
// block_tokens, ...); windowed groups leave empty entries behind the window.
//
// Thread rule: one owner thread; the KvCache must outlive it. Move-only.

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kv/kv_cache.h"

namespace pagoda {

class BlockTables {
 public:
  explicit BlockTables(KvCache& cache);
  BlockTables(BlockTables&& other) = delete;
  ~BlockTables() { release(); }

  /// How many of the `wanted` tokens after the first `num_computed` have room, counting blocks that could be allocated.
  int32_t room(int32_t num_computed, int32_t wanted) const;
  /// Takes blocks for tokens [0, num_tokens). room() said that they exist.
  void reserve(int32_t num_tokens);
  /// Takes the blocks of a match into empty tables.
  void adopt(const PrefixMatch& match);
  /// Gives back what a row at `next_position` and those after it cannot see.
  void release_behind(int32_t next_position);
  /// Offers the full blocks of `tokens` (computed and kept, from position 0) to the prefix index.
  void publish(std::string_view key, std::span<const int32_t> tokens);
  /// Gives every block back, the last one first: the ends of prefixes are reused before their beginnings.
  void release();

  int32_t num_held(int32_t group) const { return groups_[group].num_held; }
  /// Blocks of `match` that are cached, so that adopting them makes fewer available.
  int32_t num_unheld(const PrefixMatch& match, int32_t group) const;

  /// Entries added since the last call (or since release): appends their ids, returns the first entry's index.
  int32_t take_new_entries(int32_t group, std::vector<int32_t>& ids);

 private:
  struct Group {
    std::vector<BlockRef> blocks;
    int32_t first_held = 0;
    int32_t num_held = 0;
    int32_t num_taken = 0;  // entries already returned by take_new_entries
  };

  void move_cursor(int32_t node, int32_t num_published);
  void offer_block(int32_t node, int32_t block_idx);

  KvCache& cache_;
  std::vector<Group> groups_;
  // Where publishing goes on: the node of the last published block, pinned.
  int32_t cursor_ = PrefixIndex::kNone;
  int32_t num_published_ = 0;
  bool is_index_full_ = false;
};

}  // namespace pagoda
