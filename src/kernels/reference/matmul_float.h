#pragma once
// Float arithmetic of the kernels' definition: IEEE binary32, round to nearest even, as the vector units compute with
// FTZ and DAZ on. Written so that the result is the same whatever the calling thread's control register says.

#include <bit>
#include <cmath>
#include <cstdint>

namespace pagoda {

/// DAZ on an input, FTZ on an exact result: a subnormal becomes zero of the same sign.
inline float flush_denormal(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return (bits & 0x7f800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : x;
}

/// a * b + c with one rounding. FTZ looks at the result rounded to 24 bits with an unbounded exponent: a value just
/// below 2^-126 may round up to 2^-126 in either sense, and only then the two senses can disagree.
inline float fma_flushed(float a, float b, float c) {
  a = flush_denormal(a), b = flush_denormal(b), c = flush_denormal(c);
  const float result = std::fma(a, b, c);
  if (std::fabs(result) != 0x1p-126f) return flush_denormal(result);
  const double product = static_cast<double>(a) * static_cast<double>(b);  // exact
  const double addend = c;
  const double sum = product + addend;
  const double from_product = sum - addend;
  const double error = (product - from_product) + (addend - (sum - from_product));  // exact (two-sum)
  const double tie = 0x1p-126 - 0x1p-151;                                           // rounds up to even
  const double magnitude = std::fabs(sum);
  const bool tiny = magnitude < tie || (magnitude == tie && error * sum < 0);
  return tiny ? std::copysign(0.0f, result) : result;
}

inline float mul_flushed(float a, float b) {
  a = flush_denormal(a), b = flush_denormal(b);
  const float result = a * b;
  if (std::fabs(result) != 0x1p-126f) return flush_denormal(result);
  const double product = static_cast<double>(a) * static_cast<double>(b);
  return std::fabs(product) < 0x1p-126 - 0x1p-151 ? std::copysign(0.0f, result) : result;
}

/// A sum of two floats below 2^-125 is exact, so flushing the result is enough.
inline float add_flushed(float a, float b) {
  return flush_denormal(flush_denormal(a) + flush_denormal(b));
}

inline float div_flushed(float a, float b) {
  return flush_denormal(flush_denormal(a) / flush_denormal(b));
}

}  // namespace pagoda
