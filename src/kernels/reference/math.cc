#include "kernels/math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace pagoda::math {

namespace {

constexpr double kLog2e = 1.44269504088896340736;
constexpr double kLn2High = 0.693147180559945286227;  // ln 2 rounded to F64
constexpr double kLn2Low = 2.319046813846299558e-17;  // ln 2 - kLn2High
constexpr double kTwoOverPi = 0.636619772367581343076;
constexpr double kHalfPiHigh = 1.57079632679489655800;  // pi/2 rounded to F64
constexpr double kHalfPiMid = 6.12323399573676603587e-17;
constexpr double kHalfPiLow = -1.49738490485916983e-33;
constexpr double kRoundMagic = 6755399441055744.0;  // 1.5 * 2^52

double round_even(double x) {
  return (x + kRoundMagic) - kRoundMagic;
}
double power_of_two(int e) {
  return std::bit_cast<double>(static_cast<uint64_t>(e + 1023) << 52);
}

// Taylor series in z = r^2, highest term first; |r| <= pi/4 leaves 8e-20 and 2e-18.
constexpr double kSin[8] = {1.0 / 355687428096000.0, -1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0,
                            1.0 / 362880.0,          -1.0 / 5040.0,          1.0 / 120.0,        -1.0 / 6.0};
constexpr double kCos[7] = {1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0, -1.0 / 3628800.0,
                            1.0 / 40320.0,          -1.0 / 720.0,         1.0 / 24.0};

double sin_core(double r) {
  const double z = r * r;
  double p = kSin[0];
  for (int i = 1; i < 8; ++i) p = std::fma(p, z, kSin[i]);
  return std::fma(r * z, p, r);
}

double cos_core(double r) {
  const double z = r * r;
  double p = kCos[0];
  for (int i = 1; i < 7; ++i) p = std::fma(p, z, kCos[i]);
  // 1 - z/2 loses a few bits of z; `lost` brings them back.
  const double half = 0.5 * z;
  const double head = 1.0 - half;
  const double lost = (1.0 - head) - half;
  return head + std::fma(z * z, p, lost);
}

// sin(x + quarter * pi/2). x = n * pi/2 + r: the products are exact inside the fma, so each step rounds r once.
double sin_quarter(double x, int64_t quarter) {
  if (!(std::fabs(x) <= kMaxAngle)) return std::numeric_limits<double>::quiet_NaN();
  const double n = round_even(x * kTwoOverPi);
  double r = std::fma(-n, kHalfPiHigh, x);
  r = std::fma(-n, kHalfPiMid, r);
  r = std::fma(-n, kHalfPiLow, r);
  const int64_t q = (static_cast<int64_t>(n) + quarter) & 3;
  const double v = (q & 1) != 0 ? cos_core(r) : sin_core(r);
  return q >= 2 ? -v : v;
}

}  // namespace

double exp(double x) {
  if (x != x) return x;
  if (x > 709.782712893384) return std::numeric_limits<double>::infinity();
  if (x < -708.396418532264) return 0.0;
  const double n = round_even(x * kLog2e);
  double r = std::fma(-n, kLn2High, x);
  r = std::fma(-n, kLn2Low, r);
  // Taylor up to r^13 / 13!: |r| <= 0.347 leaves 5e-18.
  double p = 1.0 / 6227020800.0;
  constexpr double kTerms[11] = {1.0 / 479001600.0,
                                 1.0 / 39916800.0,
                                 1.0 / 3628800.0,
                                 1.0 / 362880.0,
                                 1.0 / 40320.0,
                                 1.0 / 5040.0,
                                 1.0 / 720.0,
                                 1.0 / 120.0,
                                 1.0 / 24.0,
                                 1.0 / 6.0,
                                 0.5};
  for (const double term : kTerms) p = std::fma(p, r, term);
  p = 1.0 + std::fma(r * r, p, r);
  // Two factors: 2^1024 is not a number.
  const int e = static_cast<int>(n);
  return p * power_of_two(e / 2) * power_of_two(e - e / 2);
}

double log(double x) {
  if (x != x || x < 0.0) return std::numeric_limits<double>::quiet_NaN();
  if (x < std::numeric_limits<double>::min()) return -std::numeric_limits<double>::infinity();
  if (x == std::numeric_limits<double>::infinity()) return x;
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m - 1) / (m + 1).
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int e = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  if (m > 1.41421356237309504880) {
    m *= 0.5;
    ++e;
  }
  const double f = m - 1.0;
  const double s = f / (m + 1.0);
  const double z = s * s;
  double p = 2.0 / 25.0;
  for (int k = 23; k >= 3; k -= 2) p = std::fma(p, z, 2.0 / k);
  // log m = f - (f^2/2 - s (f^2/2 + z p)): the leading term f is exact.
  const double half_square = 0.5 * f * f;
  const double tail = s * (half_square + z * p);
  return std::fma(e, kLn2High, f - (half_square - std::fma(e, kLn2Low, tail)));
}

double sin(double x) {
  return sin_quarter(x, 0);
}
double cos(double x) {
  return sin_quarter(x, 1);
}
double pow(double base, double exponent) {
  return exp(exponent * log(base));
}

}  // namespace pagoda::math
