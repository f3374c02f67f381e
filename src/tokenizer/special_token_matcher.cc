#include "tokenizer/special_token_matcher.h"

#include <algorithm>
#include <numeric>

namespace pagoda {

int32_t SpecialTokenMatcher::child(int32_t node, uint8_t byte) const {
  if (node == 0) return root_children_[byte];
  const auto it = children_.find(static_cast<uint64_t>(node) << 8 | byte);
  return it == children_.end() ? 0 : it->second;
}

void SpecialTokenMatcher::add(std::string_view text, int32_t token) {
  if (text.empty()) return;
  int32_t node = 0;
  for (size_t i = text.size(); i-- > 0;) {
    const auto byte = static_cast<uint8_t>(text[i]);
    int32_t next = child(node, byte);
    if (next == 0) {
      next = static_cast<int32_t>(nodes_.size());
      const uint32_t depth = nodes_[static_cast<size_t>(node)].depth + 1;
      nodes_.push_back({.parent = node, .depth = depth, .byte = byte});
      if (node == 0) {
        root_children_[byte] = next;
      } else {
        children_.emplace(static_cast<uint64_t>(node) << 8 | byte, next);
      }
    }
    node = next;
  }
  Node& last = nodes_[static_cast<size_t>(node)];
  if (last.token >= 0) return;
  last.token = token;
  last.token_length = last.depth;
}

int32_t SpecialTokenMatcher::next_state(int32_t node, uint8_t byte) const {
  while (true) {
    if (const int32_t next = child(node, byte); next != 0) return next;
    if (node == 0) return 0;
    node = nodes_[static_cast<size_t>(node)].fail;
  }
}

void SpecialTokenMatcher::build() {
  // A node's failure link is shallower than the node: fill by depth.
  std::vector<int32_t> order(nodes_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return nodes_[static_cast<size_t>(a)].depth < nodes_[static_cast<size_t>(b)].depth;
  });
  for (const int32_t id : order) {
    Node& node = nodes_[static_cast<size_t>(id)];
    if (node.depth == 0) continue;
    node.fail = node.depth == 1 ? 0 : next_state(nodes_[static_cast<size_t>(node.parent)].fail, node.byte);
    const Node& shorter = nodes_[static_cast<size_t>(node.fail)];
    if (node.token < 0 && shorter.token >= 0) {
      node.token = shorter.token;
      node.token_length = shorter.token_length;
    }
  }
}

void SpecialTokenMatcher::find_all(std::string_view text, std::vector<Match>& matches) const {
  matches.clear();
  if (empty()) return;
  int32_t state = 0;
  for (size_t i = text.size(); i-- > 0;) {
    state = next_state(state, static_cast<uint8_t>(text[i]));
    const Node& node = nodes_[static_cast<size_t>(state)];
    if (node.token >= 0) matches.push_back({i, node.token_length, node.token});
  }
}

}  // namespace pagoda
