#include "kv/block_tables.h"

#include <algorithm>

#include "base/check.h"

namespace pagoda {

BlockTables::BlockTables(KvCache& cache) : cache_(cache), groups_(cache.num_groups()) {}

int32_t BlockTables::room(int32_t num_computed, int32_t wanted) const {
  int64_t tokens = wanted;
  for (int32_t g = 0; g < cache_.num_groups(); ++g) {
    const int64_t blocks = static_cast<int64_t>(groups_[g].blocks.size()) + cache_.pool(g).num_available();
    tokens = std::min(tokens, blocks * cache_.config().block_tokens - num_computed);
  }
  return static_cast<int32_t>(std::max<int64_t>(tokens, 0));
}

void BlockTables::reserve(int32_t num_tokens) {
  const int32_t bt = cache_.config().block_tokens;
  const size_t num_blocks = (static_cast<size_t>(num_tokens) + bt - 1) / bt;
  for (int32_t g = 0; g < cache_.num_groups(); ++g) {
    Group& group = groups_[g];
    while (group.blocks.size() < num_blocks) {
      std::optional<BlockRef> block = cache_.try_allocate(g);
      PAGODA_CHECK(block.has_value());
      group.blocks.push_back(std::move(*block));
      ++group.num_held;
    }
  }
}

void BlockTables::adopt(const PrefixMatch& match) {
  if (match.num_tokens == 0) return;
  const int32_t num_blocks = static_cast<int32_t>(match.nodes.size());
  for (int32_t g = 0; g < cache_.num_groups(); ++g) {
    Group& group = groups_[g];
    PAGODA_CHECK(group.blocks.empty());
    group.blocks.resize(num_blocks);
    group.first_held = group.num_taken = cache_.first_visible_block(g, match.num_tokens);
    group.num_held = num_blocks - group.first_held;
    for (int32_t b = group.first_held; b < num_blocks; ++b) {
      group.blocks[b] = cache_.pools_[g].share(cache_.index_.block(match.nodes[b], g));
    }
  }
  move_cursor(match.nodes.back(), num_blocks);
}

int32_t BlockTables::num_unheld(const PrefixMatch& match, int32_t group) const {
  int32_t count = 0;
  const int32_t num_blocks = static_cast<int32_t>(match.nodes.size());
  for (int32_t b = cache_.first_visible_block(group, match.num_tokens); b < num_blocks; ++b) {
    count += cache_.pool(group).num_refs(cache_.index_.block(match.nodes[b], group)) == 0 ? 1 : 0;
  }
  return count;
}

void BlockTables::release_behind(int32_t next_position) {
  for (int32_t g = 0; g < cache_.num_groups(); ++g) {
    Group& group = groups_[g];
    const int32_t end =
        std::min(cache_.first_visible_block(g, next_position), static_cast<int32_t>(group.blocks.size()));
    for (; group.first_held < end; ++group.first_held, --group.num_held) group.blocks[group.first_held].reset();
  }
}

void BlockTables::move_cursor(int32_t node, int32_t num_published) {
  cache_.index_.pin(node);  // before the old one is unpinned: it may be the parent
  if (cursor_ != PrefixIndex::kNone) cache_.index_.unpin(cursor_);
  cursor_ = node;
  num_published_ = num_published;
}

void BlockTables::offer_block(int32_t node, int32_t block_idx) {
  for (int32_t g = 0; g < cache_.num_groups(); ++g) {
    const BlockRef& block = groups_[g].blocks[block_idx];
    // Someone else's block with the same tokens stays; ours goes back to the free ones when released.
    if (!block || cache_.index_.block(node, g) != PrefixIndex::kNone) continue;
    cache_.index_.set_block(node, g, block.id());
    cache_.pools_[g].mark_published(block.id());
  }
}

void BlockTables::publish(std::string_view key, std::span<const int32_t> tokens) {
  const int32_t bt = cache_.config().block_tokens;
  const int32_t num_full = static_cast<int32_t>(tokens.size()) / bt;
  if (num_full <= num_published_ || is_index_full_) return;
  if (cursor_ == PrefixIndex::kNone) {
    const int32_t root = cache_.index_.make_root(key);
    if (root == PrefixIndex::kNone) {
      is_index_full_ = true;
      return;
    }
    move_cursor(root, 0);
  }
  while (num_published_ < num_full) {
    const int32_t child = cache_.index_.make_child(cursor_, tokens.subspan(size_t{1} * num_published_ * bt, bt));
    if (child == PrefixIndex::kNone) {
      is_index_full_ = true;
      return;
    }
    offer_block(child, num_published_);
    move_cursor(child, num_published_ + 1);
  }
}

void BlockTables::release() {
  for (Group& group : groups_) {
    while (!group.blocks.empty()) group.blocks.pop_back();
    group = Group{};
  }
  if (cursor_ != PrefixIndex::kNone) cache_.index_.unpin(cursor_);
  cursor_ = PrefixIndex::kNone;
  num_published_ = 0;
  is_index_full_ = false;
}

int32_t BlockTables::take_new_entries(int32_t group, std::vector<int32_t>& ids) {
  Group& table = groups_[group];
  const int32_t first = table.num_taken;
  for (size_t b = first; b < table.blocks.size(); ++b) ids.push_back(table.blocks[b].id());
  table.num_taken = static_cast<int32_t>(table.blocks.size());
  return first;
}

}  // namespace pagoda
