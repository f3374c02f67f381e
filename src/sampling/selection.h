#pragma once
// Exact selection over large vocabularies without sorting them. Tokens are ranked by value, largest first, equal values
// by lowest id; the rank is a total order, so every result is unique.
//
// Thread rule: pure functions on the caller's buffers.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/check.h"

namespace pagoda {

/// What one pass over logits finds out.
struct ValueRange {
  float max = 0.0f;        ///< -infinity when every value is, or when not usable
  bool is_usable = false;  ///< no NaN, no +infinity: a distribution can be made of them
};
ValueRange find_range(std::span<const float> values);

/// Lowest id whose value equals `max`, the largest value.
int32_t find_first(std::span<const float> values, float max);

/// True when a ranks before b.
inline bool ranks_before(std::span<const float> values, int32_t a, int32_t b) {
  const float va = values[static_cast<size_t>(a)];
  const float vb = values[static_cast<size_t>(b)];
  return va > vb || (va == vb && a < b);
}

/// Collects the k best-ranked ids for which accept(id) holds, in no order. One pass: an id enters the buffer only when
/// it beats the k-th best so far, and a full buffer of 2k is cut back to k. -infinity never enters.
template <typename Accept>
void select_best(std::span<const float> values, size_t k, const Accept& accept, std::vector<int32_t>& best);

/// Probability weights as integers: 2^40 is the most likely token's. Sums of fewer than 2^23 of them fit 64 bits and
/// are exact, so they depend on no order. What truncation loses is below 2^-40 of the largest probability a token, far
/// below the rounding of the float it came from.
inline uint64_t weight_of(float relative_probability) {
  return static_cast<uint64_t>(relative_probability * 0x1p40f);
}

/// Reorders ids so that the shortest prefix (in the order of `before`) whose weights reach `need` stands first with its
/// last member at its end, and returns its length. `need` must be in [1, sum of all weights]. Linear on average.
template <typename Before>
size_t prefix_reaching(std::span<int32_t> ids, const Before& before, std::span<const float> relative, uint64_t need);

// Template bodies.

template <typename Accept>
void select_best(std::span<const float> values, size_t k, const Accept& accept, std::vector<int32_t>& best) {
  best.clear();
  k = std::min(k, values.size());
  if (k == 0) return;
  const auto before = [values](int32_t a, int32_t b) { return ranks_before(values, a, b); };
  const auto cut_back = [&] {
    std::nth_element(best.begin(), best.begin() + static_cast<ptrdiff_t>(k - 1), best.end(), before);
  };
  // Ids rise, so a later id with a value equal to the k-th best ranks after it: a strict comparison is exact.
  float threshold = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] > threshold)) continue;
    const auto id = static_cast<int32_t>(i);
    if (!accept(id)) continue;
    best.push_back(id);
    if (best.size() < 2 * k) continue;
    cut_back();
    best.resize(k);
    threshold = values[static_cast<size_t>(best[k - 1])];
  }
  if (best.size() <= k) return;
  cut_back();
  best.resize(k);
}

template <typename Before>
size_t prefix_reaching(std::span<int32_t> ids, const Before& before, std::span<const float> relative, uint64_t need) {
  constexpr size_t kSortBelow = 32;  // a range this short is sorted and walked: cheaper than three more partitions
  const auto weight = [relative](int32_t id) { return weight_of(relative[static_cast<size_t>(id)]); };
  size_t first = 0;
  size_t last = ids.size();
  uint64_t reached = 0;  // weight of ids[0, first)
  while (last - first > kSortBelow) {
    const size_t middle = first + (last - first) / 2;
    const auto at = [ids](size_t i) { return ids.begin() + static_cast<ptrdiff_t>(i); };
    std::nth_element(at(first), at(middle), at(last), before);
    uint64_t below = 0;
    for (size_t i = first; i < middle; ++i) below += weight(ids[i]);
    if (reached + below >= need) {
      last = middle;
    } else {
      reached += below;
      first = middle;
    }
  }
  std::sort(ids.begin() + static_cast<ptrdiff_t>(first), ids.begin() + static_cast<ptrdiff_t>(last), before);
  for (size_t i = first; i < last; ++i) {
    reached += weight(ids[i]);
    if (reached >= need) return i + 1;
  }
  PAGODA_CHECK(false && "need exceeds the sum of the weights");
  return ids.size();
}

}  // namespace pagoda
