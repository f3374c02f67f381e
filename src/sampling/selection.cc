#include "sampling/selection.h"

#include <bit>

namespace pagoda {
namespace {

// Order-preserving map to integers, which compilers turn into vector code (a float maximum they may not reorder):
// -NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN.
int32_t ordered_key(float value) {
  const auto bits = std::bit_cast<int32_t>(value);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

float value_of_key(int32_t key) {
  return std::bit_cast<float>(key ^ ((key >> 31) & 0x7fffffff));
}

}  // namespace

ValueRange find_range(std::span<const float> values) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  int32_t low = std::numeric_limits<int32_t>::max();
  int32_t high = std::numeric_limits<int32_t>::min();
  for (const float value : values) {
    const int32_t key = ordered_key(value);
    low = std::min(low, key);
    high = std::max(high, key);
  }
  ValueRange range;
  range.is_usable = !values.empty() && low >= ordered_key(-kInfinity) && high < ordered_key(kInfinity);
  range.max = range.is_usable ? value_of_key(high) : -kInfinity;
  return range;
}

int32_t find_first(std::span<const float> values, float max) {
  return static_cast<int32_t>(std::find(values.begin(), values.end(), max) - values.begin());
}

}  // namespace pagoda
