#pragma once
// The merge loop that every BPE shares: repeatedly joins the best pair of neighbours (lowest rank, then leftmost).
// n log n: each join adds at most two candidates to a heap; outdated ones are dropped when they surface.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pagoda {

struct MergeSymbol {
  uint32_t begin = 0;
  uint32_t length = 0;   ///< bytes; 0: joined into the symbol before it
  int32_t id = -1;       ///< token id, -1: no token
  int32_t previous = -1;
  int32_t next = -1;
};

/// Working memory of one encode call, reused from word to word.
class PairMerger {
 public:
  std::vector<MergeSymbol>& symbols() { return symbols_; }

  void add_symbol(uint32_t begin, uint32_t length, int32_t id) {
    const auto index = static_cast<int32_t>(symbols_.size());
    if (index > 0) symbols_.back().next = index;
    symbols_.push_back({begin, length, id, index - 1, -1});
  }

  /// `find(left, right, rank, id)` says whether two symbols join, with which rank and into which token.
  template <typename Find>
  void run(const Find& find) {
    heap_.clear();
    for (size_t i = 1; i < symbols_.size(); ++i) {
      push_candidate(find, static_cast<int32_t>(i - 1), static_cast<int32_t>(i), /*keep_heap=*/false);
    }
    std::make_heap(heap_.begin(), heap_.end(), worse);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), worse);
      const Candidate best = heap_.back();
      heap_.pop_back();
      join_if_current(find, best);
    }
  }

 private:
  struct Candidate {
    uint32_t rank;
    int32_t left;
    uint32_t length;  // of both symbols when the candidate was made
    int32_t id;
  };
  static bool worse(const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  }

  template <typename Find>
  void push_candidate(const Find& find, int32_t left_index, int32_t right_index, bool keep_heap) {
    const MergeSymbol& left = symbols_[static_cast<size_t>(left_index)];
    const MergeSymbol& right = symbols_[static_cast<size_t>(right_index)];
    uint32_t rank;
    int32_t id;
    if (!find(left, right, rank, id)) return;
    heap_.push_back({rank, left_index, left.length + right.length, id});
    if (keep_heap) std::push_heap(heap_.begin(), heap_.end(), worse);
  }

  template <typename Find>
  void join_if_current(const Find& find, const Candidate& best) {
    MergeSymbol& left = symbols_[static_cast<size_t>(best.left)];
    if (left.length == 0 || left.next < 0) return;
    MergeSymbol& right = symbols_[static_cast<size_t>(left.next)];
    // Joins only ever lengthen symbols, so an unchanged sum means an unchanged pair.
    if (left.length + right.length != best.length) return;
    left.length = best.length;
    left.id = best.id;
    right.length = 0;
    left.next = right.next;
    if (left.next >= 0) symbols_[static_cast<size_t>(left.next)].previous = best.left;
    if (left.previous >= 0) push_candidate(find, left.previous, best.left, /*keep_heap=*/true);
    if (left.next >= 0) push_candidate(find, best.left, left.next, /*keep_heap=*/true);
  }

  std::vector<MergeSymbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace pagoda
