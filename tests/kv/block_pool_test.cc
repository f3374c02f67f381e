#include "kv/block_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "base/random.h"

namespace pagoda {
namespace {

TEST(BlockPool, HandsOutEachBlockOnceAndThenNone) {
  BlockPool pool(3);
  std::vector<BlockRef> held;
  std::vector<bool> seen(3, false);
  for (int i = 0; i < 3; ++i) {
    auto allocation = pool.try_allocate();
    ASSERT_TRUE(allocation.has_value());
    EXPECT_FALSE(allocation->was_cached);
    EXPECT_FALSE(seen[allocation->block.id()]);
    seen[allocation->block.id()] = true;
    held.push_back(std::move(allocation->block));
  }
  EXPECT_FALSE(pool.try_allocate().has_value());
  EXPECT_EQ(pool.num_held(), 3);
  held.pop_back();
  EXPECT_EQ(pool.num_free(), 1);
  EXPECT_TRUE(pool.try_allocate().has_value());
  EXPECT_EQ(pool.num_free(), 1) << "a dropped allocation must come back";
}

TEST(BlockPool, MovedReferencesReleaseOnce) {
  BlockPool pool(2);
  BlockRef a = std::move(pool.try_allocate()->block);
  BlockRef b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT: the moved-from state is the point
  EXPECT_TRUE(b);
  BlockRef c = pool.share(b.id());
  EXPECT_EQ(pool.num_refs(b.id()), 2);
  c = std::move(b);
  EXPECT_EQ(pool.num_held(), 1);
  BlockRef& self = c;
  c = std::move(self);
  EXPECT_EQ(pool.num_held(), 1);
  c.reset();
  c.reset();
  EXPECT_EQ(pool.num_held(), 0);
  EXPECT_EQ(pool.num_free(), 2);
}

TEST(BlockPool, PublishedBlocksStayCachedAndTheOldestGoesFirst) {
  BlockPool pool(3);
  std::vector<BlockRef> held;
  std::vector<int32_t> ids;
  for (int i = 0; i < 3; ++i) {
    held.push_back(std::move(pool.try_allocate()->block));
    ids.push_back(held.back().id());
    pool.mark_published(ids.back());
  }
  held[1].reset();
  held[0].reset();
  held[2].reset();
  EXPECT_EQ(pool.num_cached(), 3);
  EXPECT_EQ(pool.num_available(), 3);
  const BlockRef again = pool.share(ids[1]);  // a hit: no longer up for eviction
  EXPECT_EQ(pool.num_cached(), 2);
  auto first = pool.try_allocate();
  ASSERT_TRUE(first.has_value());
  EXPECT_TRUE(first->was_cached);
  EXPECT_EQ(first->block.id(), ids[0]);
  EXPECT_FALSE(pool.is_published(ids[0]));
  auto second = pool.try_allocate();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->block.id(), ids[2]);
  EXPECT_FALSE(pool.try_allocate().has_value());
}

TEST(BlockPool, CountsAddUpUnderRandomUse) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    uint64_t state = seed;
    const auto pick = [&state](uint64_t n) { return static_cast<int32_t>((state = mix64(state)) % n); };
    BlockPool pool(1 + pick(20));
    std::vector<BlockRef> held;
    for (int i = 0; i < 500; ++i) {
      const int32_t action = pick(4);
      if (action == 0) {
        const bool has_room = pool.num_available() > 0;
        const bool has_free = pool.num_free() > 0;
        auto allocation = pool.try_allocate();
        ASSERT_EQ(allocation.has_value(), has_room);
        if (allocation) {
          EXPECT_EQ(allocation->was_cached, !has_free) << "free blocks go before cached ones";
          held.push_back(std::move(allocation->block));
        }
      } else if (!held.empty()) {
        const int32_t at = pick(held.size());
        if (action == 1) held.push_back(pool.share(held[at].id()));
        if (action == 2) pool.mark_published(held[at].id());
        if (action == 3) held.erase(held.begin() + at);
      }
      std::map<int32_t, int32_t> refs;
      for (const BlockRef& ref : held) ++refs[ref.id()];
      for (const auto& [id, count] : refs) ASSERT_EQ(pool.num_refs(id), count);
      ASSERT_EQ(pool.num_held(), static_cast<int32_t>(refs.size()));
      ASSERT_EQ(pool.num_free() + pool.num_cached() + pool.num_held(), pool.num_blocks());
    }
    held.clear();
    EXPECT_EQ(pool.num_available(), pool.num_blocks());
  }
}

}  // namespace
}  // namespace pagoda
