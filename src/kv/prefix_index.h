#pragma once
// PrefixIndex: which full blocks hold which tokens. A trie per cache key: a node is one block of tokens after its
// parent's, and holds for each KV group the id of the block with their keys and values, or none. Tokens are compared
// one by one, in ordered maps: there is no hash that could collide or be flooded.
//
// A node lives while it has blocks, children or pins. Nothing here owns a block: the owner reports evictions.
//
// Thread rule: one owner thread.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda {

class PrefixIndex {
 public:
  /// `blocks_per_group`: pool sizes, one a group. No more than `max_nodes` nodes exist at a time.
  PrefixIndex(int32_t block_tokens, const std::vector<int32_t>& blocks_per_group, int32_t max_nodes);
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  static constexpr int32_t kNone = -1;

  /// The root of a cache key, or kNone.
  int32_t find_root(std::string_view key) const;
  int32_t find_child(int32_t node, std::span<const int32_t> block_tokens) const;
  /// The same, made when missing; kNone when the index is full.
  int32_t make_root(std::string_view key);
  int32_t make_child(int32_t node, std::span<const int32_t> block_tokens);

  int32_t block(int32_t node, int32_t group) const { return blocks_[node * num_groups_ + group]; }
  /// The node must have no block of this group.
  void set_block(int32_t node, int32_t group, int32_t block_id);
  /// The block's content is gone; it was set before.
  void erase_block(int32_t group, int32_t block_id);

  /// A pinned node stays, even without blocks.
  void pin(int32_t node) { ++nodes_[node].num_pins; }
  void unpin(int32_t node);

  int32_t num_nodes() const { return static_cast<int32_t>(nodes_.size() - unused_.size()); }

 private:
  struct TokensLess {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
    }
  };
  using Children = std::map<std::vector<int32_t>, int32_t, TokensLess>;
  using Roots = std::map<std::string, int32_t, std::less<>>;
  struct Node {
    int32_t parent = kNone;  // kNone: a root
    int32_t num_pins = 0;
    int32_t num_blocks = 0;
    Children children;
    Children::iterator self_in_parent;
    Roots::iterator self_in_roots;
  };

  int32_t make_node(int32_t parent);
  void prune(int32_t node);

  const int32_t num_groups_;
  const int32_t block_tokens_;
  const int32_t max_nodes_;
  Roots roots_;
  std::deque<Node> nodes_;  // a deque: nodes hold iterators into each other's maps and must not move
  std::vector<int32_t> unused_;
  std::vector<int32_t> blocks_;                      // [node][group]
  std::vector<std::vector<int32_t>> node_of_block_;  // [group][block]
};

}  // namespace pagoda
