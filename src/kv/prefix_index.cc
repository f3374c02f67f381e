#include "kv/prefix_index.h"

#include "base/check.h"

namespace pagoda {

PrefixIndex::PrefixIndex(int32_t block_tokens, const std::vector<int32_t>& blocks_per_group, int32_t max_nodes)
    : num_groups_(static_cast<int32_t>(blocks_per_group.size())), block_tokens_(block_tokens), max_nodes_(max_nodes) {
  for (const int32_t num_blocks : blocks_per_group) node_of_block_.emplace_back(num_blocks, kNone);
}

int32_t PrefixIndex::find_root(std::string_view key) const {
  const auto it = roots_.find(key);
  return it == roots_.end() ? kNone : it->second;
}

int32_t PrefixIndex::find_child(int32_t node, std::span<const int32_t> block_tokens) const {
  const Children& children = nodes_[node].children;
  const auto it = children.find(block_tokens);
  return it == children.end() ? kNone : it->second;
}

int32_t PrefixIndex::make_node(int32_t parent) {
  if (num_nodes() >= max_nodes_) return kNone;
  int32_t node = static_cast<int32_t>(nodes_.size());
  if (!unused_.empty()) {
    node = unused_.back();
    unused_.pop_back();
  } else {
    nodes_.emplace_back();
    blocks_.resize(blocks_.size() + num_groups_, kNone);
  }
  nodes_[node].parent = parent;
  return node;
}

int32_t PrefixIndex::make_root(std::string_view key) {
  if (const int32_t found = find_root(key); found != kNone) return found;
  const int32_t node = make_node(kNone);
  if (node != kNone) nodes_[node].self_in_roots = roots_.emplace(key, node).first;
  return node;
}

int32_t PrefixIndex::make_child(int32_t parent, std::span<const int32_t> block_tokens) {
  PAGODA_CHECK(static_cast<int32_t>(block_tokens.size()) == block_tokens_);
  if (const int32_t found = find_child(parent, block_tokens); found != kNone) return found;
  const int32_t node = make_node(parent);
  if (node == kNone) return kNone;
  Children& children = nodes_[parent].children;
  nodes_[node].self_in_parent =
      children.emplace(std::vector<int32_t>(block_tokens.begin(), block_tokens.end()), node).first;
  return node;
}

void PrefixIndex::set_block(int32_t node, int32_t group, int32_t block_id) {
  int32_t& entry = blocks_[node * num_groups_ + group];
  PAGODA_CHECK(entry == kNone && node_of_block_[group][block_id] == kNone);
  entry = block_id;
  node_of_block_[group][block_id] = node;
  ++nodes_[node].num_blocks;
}

void PrefixIndex::erase_block(int32_t group, int32_t block_id) {
  const int32_t node = node_of_block_[group][block_id];
  PAGODA_CHECK(node != kNone);
  node_of_block_[group][block_id] = kNone;
  blocks_[node * num_groups_ + group] = kNone;
  --nodes_[node].num_blocks;
  prune(node);
}

void PrefixIndex::unpin(int32_t node) {
  PAGODA_CHECK(nodes_[node].num_pins > 0);
  --nodes_[node].num_pins;
  prune(node);
}

void PrefixIndex::prune(int32_t node) {
  while (node != kNone) {
    Node& n = nodes_[node];
    if (n.num_pins > 0 || n.num_blocks > 0 || !n.children.empty()) return;
    const int32_t parent = n.parent;
    if (parent == kNone) {
      roots_.erase(n.self_in_roots);
    } else {
      nodes_[parent].children.erase(n.self_in_parent);
    }
    unused_.push_back(node);
    node = parent;
  }
}

}  // namespace pagoda
