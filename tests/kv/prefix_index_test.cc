#include "kv/prefix_index.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "kv/cache_key.h"

namespace pagoda {
namespace {

using Tokens = std::vector<int32_t>;

TEST(CacheKey, B15PartsOfDifferentKindsOrCutsNeverCollide) {
  const auto key = [](std::vector<std::pair<CacheKeyPart, std::string>> parts) {
    CacheKey k;
    for (const auto& [part, value] : parts) k.add(part, value);
    return k.bytes();
  };
  using enum CacheKeyPart;
  EXPECT_EQ(key({{kNamespace, "X"}}), key({{kNamespace, "X"}}));
  EXPECT_NE(key({{kNamespace, "X"}}), key({{kAdapter, "X"}}));
  EXPECT_NE(key({{kNamespace, "XY"}, {kAdapter, ""}}), key({{kNamespace, "X"}, {kAdapter, "Y"}}));
  EXPECT_NE(key({{kNamespace, ""}}), key({}));
  // A value that spells another part's prefix and text.
  CacheKey inner;
  inner.add(kAdapter, "Y");
  EXPECT_NE(key({{kNamespace, "X" + inner.bytes()}}), key({{kNamespace, "X"}, {kAdapter, "Y"}}));
}

TEST(PrefixIndex, ChildrenAreTheirParentsAndExactTokens) {
  PrefixIndex index(2, {10}, 100);
  EXPECT_EQ(index.find_root("a"), PrefixIndex::kNone);
  const int32_t a = index.make_root("a");
  const int32_t b = index.make_root("b");
  EXPECT_NE(a, b);
  EXPECT_EQ(index.make_root("a"), a);
  const int32_t child = index.make_child(a, Tokens{1, 2});
  EXPECT_EQ(index.make_child(a, Tokens{1, 2}), child);
  EXPECT_EQ(index.find_child(a, Tokens{1, 2}), child);
  EXPECT_EQ(index.find_child(a, Tokens{2, 1}), PrefixIndex::kNone);
  EXPECT_EQ(index.find_child(b, Tokens{1, 2}), PrefixIndex::kNone);
  EXPECT_EQ(index.find_child(child, Tokens{1, 2}), PrefixIndex::kNone);
}

TEST(PrefixIndex, NodesLiveAsLongAsSomethingNeedsThem) {
  PrefixIndex index(1, {10, 10}, 100);
  const int32_t root = index.make_root("");
  const int32_t first = index.make_child(root, Tokens{1});
  const int32_t second = index.make_child(first, Tokens{2});
  index.set_block(first, 0, 3);
  index.set_block(second, 0, 4);
  index.set_block(second, 1, 4);
  index.erase_block(0, 3);
  EXPECT_EQ(index.num_nodes(), 3) << "a node with children went";
  EXPECT_EQ(index.block(first, 0), PrefixIndex::kNone);
  index.set_block(first, 0, 5);  // computed again: the chain below is whole again
  index.erase_block(0, 5);
  index.pin(second);
  index.erase_block(0, 4);
  index.erase_block(1, 4);
  EXPECT_EQ(index.num_nodes(), 3) << "a pinned node went";
  index.unpin(second);
  EXPECT_EQ(index.num_nodes(), 0);
  EXPECT_EQ(index.find_root(""), PrefixIndex::kNone);
}

TEST(PrefixIndex, IsBounded) {
  PrefixIndex index(1, {4}, 3);
  const int32_t root = index.make_root("");
  const int32_t first = index.make_child(root, Tokens{1});
  index.set_block(first, 0, 0);
  index.set_block(index.make_child(root, Tokens{2}), 0, 1);
  EXPECT_EQ(index.make_child(root, Tokens{3}), PrefixIndex::kNone);
  EXPECT_EQ(index.make_root("other"), PrefixIndex::kNone);
  EXPECT_EQ(index.make_child(root, Tokens{2}), index.find_child(root, Tokens{2}));
  index.erase_block(0, 0);
  EXPECT_NE(index.make_child(root, Tokens{3}), PrefixIndex::kNone);
}

}  // namespace
}  // namespace pagoda
