#include "kv/block_tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace pagoda {
namespace {

std::vector<int32_t> numbered(int32_t count, int32_t first = 0) {
  std::vector<int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

PrefixMatch match(const KvCache& cache, const std::vector<int32_t>& tokens) {
  PrefixMatch found;
  cache.match_prefix("", tokens, static_cast<int32_t>(tokens.size()), found);
  return found;
}

TEST(BlockTables, RoomCountsTheStartedBlockAndTheScarcestGroup) {
  KvCache cache({4, {{0, 10}, {0, 3}}});
  BlockTables tables(cache);
  EXPECT_EQ(tables.room(0, 100), 12);
  EXPECT_EQ(tables.room(0, 5), 5);
  tables.reserve(5);
  EXPECT_EQ(tables.num_held(0), 2);
  EXPECT_EQ(tables.room(5, 100), 7);
  BlockTables other(cache);
  EXPECT_EQ(other.room(0, 100), 4);
  other.reserve(4);
  EXPECT_EQ(tables.room(5, 100), 3);
  EXPECT_EQ(tables.room(8, 1), 0);
  other.release();
  EXPECT_EQ(tables.room(8, 1), 1);
}

TEST(BlockTables, NewEntriesAreReportedOnce) {
  KvCache cache({4, {{0, 10}}});
  BlockTables tables(cache);
  std::vector<int32_t> ids;
  tables.reserve(6);
  EXPECT_EQ(tables.take_new_entries(0, ids), 0);
  EXPECT_EQ(ids.size(), 2u);
  tables.reserve(8);
  EXPECT_EQ(tables.take_new_entries(0, ids), 2);
  EXPECT_EQ(ids.size(), 2u);
  tables.reserve(9);
  EXPECT_EQ(tables.take_new_entries(0, ids), 2);
  EXPECT_EQ(ids.size(), 3u);
}

TEST(BlockTables, WindowEdges) {
  // Row p of a window of 5 sees p-4..p: block 0 (tokens 0..3) is out of sight from row 8 on.
  KvCache cache({4, {{5, 10}}});
  BlockTables tables(cache);
  tables.reserve(12);
  tables.release_behind(7);
  EXPECT_EQ(tables.num_held(0), 3);
  tables.release_behind(8);
  EXPECT_EQ(tables.num_held(0), 2);
  tables.release_behind(8);
  EXPECT_EQ(tables.num_held(0), 2);
  tables.release_behind(1000);
  EXPECT_EQ(tables.num_held(0), 0);
  EXPECT_EQ(cache.pool(0).num_free(), 10);

  KvCache narrow({4, {{1, 10}}});
  EXPECT_EQ(narrow.first_visible_block(0, 4), 1);
  EXPECT_EQ(narrow.first_visible_block(0, 3), 0);
}

TEST(BlockTables, MaxBlocksIsReachedAndNeverExceeded) {
  for (const int32_t window : {0, 1, 2, 3, 4, 5, 8, 9, 17}) {
    for (const int32_t step : {1, 2, 3, 4, 5, 9}) {
      constexpr int32_t kTokens = 60;
      KvCache cache({4, {{window, 100}}});
      int32_t most = 0;
      for (int32_t offset = 1; offset <= step; ++offset) {  // every alignment of the steps
        BlockTables tables(cache);
        int32_t end = 0;
        for (int32_t next = std::min(offset, kTokens); end < kTokens; next = std::min(next + step, kTokens)) {
          tables.release_behind(end);
          tables.reserve(next);
          end = next;
          most = std::max(most, tables.num_held(0));
        }
      }
      const int32_t bound = cache.max_blocks(0, kTokens, step);
      EXPECT_LE(most, bound) << "window " << window << " step " << step;
      if (window == 0 || step % 4 != 0) {
        EXPECT_EQ(most, bound) << "window " << window << " step " << step;
      }
    }
  }
}

TEST(BlockTables, PublishedPrefixesAreFoundAndShared) {
  KvCache cache({4, {{0, 10}}});
  const std::vector<int32_t> tokens = numbered(11);
  BlockTables first(cache);
  first.reserve(11);
  EXPECT_EQ(match(cache, tokens).num_tokens, 0);
  first.publish("", std::span(tokens).first(7));
  EXPECT_EQ(match(cache, tokens).num_tokens, 4);
  first.publish("", tokens);
  EXPECT_EQ(match(cache, tokens).num_tokens, 8);
  PrefixMatch found;
  cache.match_prefix("", tokens, 7, found);
  EXPECT_EQ(found.num_tokens, 4);
  cache.match_prefix("other", tokens, 11, found);
  EXPECT_EQ(found.num_tokens, 0);

  found = match(cache, tokens);
  BlockTables second(cache);
  EXPECT_EQ(second.num_unheld(found, 0), 0);
  second.adopt(found);
  EXPECT_EQ(cache.pool(0).num_held(), 3);
  first.release();
  EXPECT_EQ(cache.pool(0).num_held(), 2);
  second.release();
  EXPECT_EQ(cache.pool(0).num_cached(), 2);
  EXPECT_EQ(second.num_unheld(found, 0), 2);
}

TEST(BlockTables, TwoThatComputeTheSameKeepOneInTheIndex) {
  KvCache cache({4, {{0, 10}}});
  const std::vector<int32_t> tokens = numbered(8);
  BlockTables first(cache);
  BlockTables second(cache);
  first.reserve(8);
  second.reserve(8);
  first.publish("", tokens);
  second.publish("", tokens);
  first.release();
  second.release();
  EXPECT_EQ(cache.pool(0).num_cached(), 2);
  EXPECT_EQ(cache.pool(0).num_free(), 8);
}

TEST(BlockTables, EvictionTakesTheEndsOfPrefixesFirst) {
  KvCache cache({4, {{0, 4}}});
  const std::vector<int32_t> tokens = numbered(16);
  BlockTables tables(cache);
  tables.reserve(16);
  tables.publish("", tokens);
  tables.release();
  tables.reserve(8);
  EXPECT_EQ(match(cache, tokens).num_tokens, 8);
  tables.reserve(16);
  EXPECT_EQ(match(cache, tokens).num_tokens, 0);
  EXPECT_EQ(cache.index().num_nodes(), 0);
}

TEST(BlockTables, PublishingGoesOnWhereOthersBlocksWereEvicted) {
  KvCache cache({4, {{0, 6}}});
  const std::vector<int32_t> tokens = numbered(12);
  BlockTables first(cache);
  BlockTables second(cache);
  first.reserve(4);
  first.publish("", std::span(tokens).first(4));
  second.reserve(4);
  second.publish("", std::span(tokens).first(4));  // its own copy is not in the index
  first.release();
  BlockTables evictor(cache);
  evictor.reserve(20);  // all that is free, and first's block
  evictor.release();
  EXPECT_EQ(match(cache, tokens).num_tokens, 0);
  second.reserve(12);
  second.publish("", tokens);  // the node it stands on must still be there
  EXPECT_EQ(match(cache, tokens).num_tokens, 0) << "the first block is in no index";
  second.release();
  EXPECT_EQ(cache.pool(0).num_held(), 0);
  EXPECT_EQ(cache.pool(0).num_cached(), 2);
}

TEST(BlockTables, AHitNeedsEveryGroup) {
  KvCache cache({4, {{0, 40}, {5, 20}}});
  const std::vector<int32_t> tokens = numbered(24);
  BlockTables tables(cache);
  tables.reserve(24);
  tables.publish("", std::span(tokens).first(16));
  EXPECT_EQ(match(cache, tokens).num_tokens, 16);
  tables.release_behind(16);  // windowed blocks 0..2 are cached
  tables.publish("", tokens);
  EXPECT_EQ(match(cache, tokens).num_tokens, 24);
  tables.release();
  // Evict the windowed blocks released first, 0..2: prefixes that end among them are gone, longer ones are not.
  BlockTables evictor(cache);
  evictor.reserve(4 * 17);
  EXPECT_EQ(match(cache, numbered(24)).num_tokens, 24);
  EXPECT_EQ(match(cache, numbered(12)).num_tokens, 0);
  EXPECT_EQ(match(cache, numbered(16)).num_tokens, 16);
}

}  // namespace
}  // namespace pagoda
