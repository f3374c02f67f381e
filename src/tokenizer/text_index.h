#pragma once
// Look-ups that encoding lives on: token text -> id, and a pair of ids -> merge. Open addressing, seeded per process,
// so that a model file cannot be built to collide.
//
// Thread rule: immutable once filled; look-ups may run from many threads. Keys of TextIndex are views: the text they
// point to must outlive the index.

#include <cstdint>
#include <string_view>
#include <vector>

namespace pagoda {

class TextIndex {
 public:
  explicit TextIndex(size_t capacity);
  /// False when the text is there already (the first value stays).
  bool insert(std::string_view text, int32_t value);
  /// -1 when absent.
  int32_t find(std::string_view text) const;

 private:
  struct Slot {
    std::string_view text;
    uint32_t hash = 0;
    int32_t value = -1;
  };
  size_t find_slot(std::string_view text, uint64_t hash) const;
  uint64_t seed_;
  size_t mask_;
  std::vector<Slot> slots_;
};

struct Merge {
  uint32_t rank = 0;
  int32_t merged_id = -1;
};

class MergeIndex {
 public:
  explicit MergeIndex(size_t capacity);
  /// False when the pair is there already (the first, better merge stays).
  bool insert(int32_t left, int32_t right, Merge merge);
  /// Null when the pair does not merge.
  const Merge* find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    int32_t left = -1;
    int32_t right = -1;
    Merge merge;
  };
  size_t find_slot(int32_t left, int32_t right) const;
  uint64_t seed_;
  size_t mask_;
  std::vector<Slot> slots_;
};

}  // namespace pagoda
