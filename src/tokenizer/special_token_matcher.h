#pragma once
// Finds the longest of a set of texts at every position of a text, in time linear in the text whatever the set is:
// an Aho-Corasick automaton over the reversed texts, run from the end of the text to its start. The state at a
// position then names the longest text that begins there.
//
// Thread rule: immutable once built; find_all may run from many threads.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pagoda {

class SpecialTokenMatcher {
 public:
  struct Match {
    size_t begin = 0;
    size_t length = 0;
    int32_t token = -1;
  };

  /// Empty texts are ignored; of equal texts the first stays.
  void add(std::string_view text, int32_t token);
  /// Call once, after the last add and before find_all.
  void build();
  bool empty() const { return nodes_.size() == 1; }
  /// For each position where a text begins, the longest one; positions fall. Matches may overlap.
  void find_all(std::string_view text, std::vector<Match>& matches) const;

 private:
  struct Node {
    int32_t parent = 0;
    int32_t fail = 0;
    int32_t token = -1;        // longest text that is a suffix of this node's path, -1: none
    uint32_t token_length = 0;
    uint32_t depth = 0;
    uint8_t byte = 0;
  };
  int32_t child(int32_t node, uint8_t byte) const;
  int32_t next_state(int32_t node, uint8_t byte) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::array<int32_t, 256> root_children_{};  // 0: none
  std::unordered_map<uint64_t, int32_t> children_;  // (node << 8 | byte) of nodes other than the root
};

}  // namespace pagoda
