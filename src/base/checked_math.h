#pragma once
// Overflow-checked arithmetic for sizes that come from untrusted files. No result means that the value does not fit.

#include <cstdint>
#include <optional>

namespace pagoda {

inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t r;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}

inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}

/// `value` rounded up to a multiple of `alignment` (a power of two).
inline std::optional<uint64_t> checked_align_up(uint64_t value, uint64_t alignment) {
  auto sum = checked_add(value, alignment - 1);
  if (!sum) return std::nullopt;
  return *sum & ~(alignment - 1);
}

template <typename T>
constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

template <typename T>
constexpr T round_up(T a, T b) {
  return ceil_div(a, b) * b;
}

}  // namespace pagoda
