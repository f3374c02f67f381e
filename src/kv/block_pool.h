#pragma once
// BlockPool: the blocks of one KV group as reference counts. A block is held (count > 0), cached (count 0, its content
// is still in the prefix index) or free. Cached blocks are reused least recently released first, after the free ones.
//
// Thread rule: one owner thread. A pool must outlive its BlockRefs.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace pagoda {

class BlockPool;

/// One reference to a block; gives it back when destroyed.
class BlockRef {
 public:
  BlockRef() = default;
  BlockRef(BlockRef&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), id_(std::exchange(other.id_, -1)) {}
  BlockRef& operator=(BlockRef&& other) noexcept;
  BlockRef(const BlockRef&) = delete;
  BlockRef& operator=(const BlockRef&) = delete;
  ~BlockRef() { reset(); }

  void reset();
  int32_t id() const { return id_; }
  explicit operator bool() const { return pool_ != nullptr; }

 private:
  friend class BlockPool;
  BlockRef(BlockPool* pool, int32_t id) : pool_(pool), id_(id) {}

  BlockPool* pool_ = nullptr;
  int32_t id_ = -1;
};

class BlockPool {
 public:
  explicit BlockPool(int32_t num_blocks);
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  struct Allocation {
    BlockRef block;
    bool was_cached = false;  ///< its old content must leave the prefix index
  };
  /// A free block, else the cached block released longest ago; nullopt when every block is held.
  std::optional<Allocation> try_allocate();
  /// One more reference to a held or cached block.
  BlockRef share(int32_t id);
  /// The block's content is in the prefix index: once released it stays cached. Undone when it is allocated again.
  void mark_published(int32_t id);

  int32_t num_blocks() const { return static_cast<int32_t>(blocks_.size()); }
  int32_t num_free() const { return static_cast<int32_t>(free_.size()); }
  int32_t num_cached() const { return num_cached_; }
  int32_t num_held() const { return num_blocks() - num_free() - num_cached_; }
  int32_t num_available() const { return num_free() + num_cached_; }
  int32_t num_refs(int32_t id) const { return blocks_[id].num_refs; }
  bool is_published(int32_t id) const { return blocks_[id].is_published; }

 private:
  friend class BlockRef;
  struct Block {
    int32_t num_refs = 0;
    int32_t older = -1;  // neighbours in the list of cached blocks
    int32_t newer = -1;
    bool is_published = false;
  };

  void release(int32_t id);
  void append_cached(int32_t id);
  void remove_cached(int32_t id);

  std::vector<Block> blocks_;
  std::vector<int32_t> free_;  // a stack: the memory touched last is used first
  int32_t oldest_cached_ = -1;
  int32_t newest_cached_ = -1;
  int32_t num_cached_ = 0;
};

}  // namespace pagoda
