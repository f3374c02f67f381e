#include "kv/block_pool.h"

#include "base/check.h"

namespace pagoda {

BlockRef& BlockRef::operator=(BlockRef&& other) noexcept {
  if (this != &other) {
    reset();
    pool_ = std::exchange(other.pool_, nullptr);
    id_ = std::exchange(other.id_, -1);
  }
  return *this;
}

void BlockRef::reset() {
  if (pool_ != nullptr) std::exchange(pool_, nullptr)->release(std::exchange(id_, -1));
}

BlockPool::BlockPool(int32_t num_blocks) : blocks_(num_blocks) {
  free_.reserve(num_blocks);
  for (int32_t id = num_blocks - 1; id >= 0; --id) free_.push_back(id);
}

std::optional<BlockPool::Allocation> BlockPool::try_allocate() {
  Allocation allocation;
  int32_t id = oldest_cached_;
  if (!free_.empty()) {
    id = free_.back();
    free_.pop_back();
  } else if (id >= 0) {
    remove_cached(id);
    blocks_[id].is_published = false;
    allocation.was_cached = true;
  } else {
    return std::nullopt;
  }
  blocks_[id].num_refs = 1;
  allocation.block = BlockRef(this, id);
  return allocation;
}

BlockRef BlockPool::share(int32_t id) {
  Block& block = blocks_[id];
  PAGODA_CHECK(block.num_refs > 0 || block.is_published);
  if (block.num_refs == 0) remove_cached(id);
  ++block.num_refs;
  return BlockRef(this, id);
}

void BlockPool::mark_published(int32_t id) {
  PAGODA_CHECK(blocks_[id].num_refs > 0);
  blocks_[id].is_published = true;
}

void BlockPool::release(int32_t id) {
  Block& block = blocks_[id];
  PAGODA_CHECK(block.num_refs > 0);
  if (--block.num_refs > 0) return;
  if (block.is_published) {
    append_cached(id);
  } else {
    free_.push_back(id);
  }
}

void BlockPool::append_cached(int32_t id) {
  blocks_[id].older = newest_cached_;
  blocks_[id].newer = -1;
  (newest_cached_ >= 0 ? blocks_[newest_cached_].newer : oldest_cached_) = id;
  newest_cached_ = id;
  ++num_cached_;
}

void BlockPool::remove_cached(int32_t id) {
  const Block& block = blocks_[id];
  (block.older >= 0 ? blocks_[block.older].newer : oldest_cached_) = block.newer;
  (block.newer >= 0 ? blocks_[block.newer].older : newest_cached_) = block.older;
  --num_cached_;
}

}  // namespace pagoda
