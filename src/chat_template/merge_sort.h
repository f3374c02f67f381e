#pragma once
// A stable sort that stays in bounds under any comparison, also an inconsistent one (NaN), and while one throws.

#include <algorithm>
#include <utility>
#include <vector>

namespace pagoda::jinja {

template <typename T, typename Less>
void merge_sort(std::vector<T>& items, Less less) {
  std::vector<T> other(items.size());
  for (size_t width = 1; width < items.size(); width *= 2) {
    for (size_t begin = 0; begin < items.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, items.size());
      const size_t end = std::min(begin + 2 * width, items.size());
      size_t left = begin;
      size_t right = middle;
      for (size_t out = begin; out < end; ++out) {
        const bool take_right = left == middle || (right < end && less(items[right], items[left]));
        other[out] = std::move(take_right ? items[right++] : items[left++]);
      }
    }
    items.swap(other);
  }
}

}  // namespace pagoda::jinja
