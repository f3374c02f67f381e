#pragma once
// Scalar definitions of the F32 functions that kernels are made of. Every instruction set repeats the same operations
// in the same order, lane by lane. C-clean; constants have internal linkage, so that no file shares a symbol.
//
// 2^x by x = n + f, |f| <= 1/2, and a polynomial of degree 5 in f with p(0) = 1: relative error below 1.8e-7.

#include <stdint.h>
#include <string.h>

namespace pagoda {
namespace f32 {

constexpr float kLog2e = 1.44269504f;
constexpr float kLog2eLow = 1.92596299e-8f;  // log2(e) - kLog2e
constexpr float kExp2Low = -120.0f;          // below: exactly 0, so that no result is a denormal
constexpr float kExp2High = 128.0f;          // from here: infinity
constexpr float kExp2[5] = {0.00132647267885f, 0.00967151261305f, 0.0555073374462f, 0.240222420858f, 0.693146977598f};
constexpr float kRoundMagic = 12582912.0f;  // 1.5 * 2^23: adding and subtracting it rounds to nearest even
constexpr float kTanhSmall = 0.625f;
/// tanh(x) = x + x * z * P(z), z = x^2, for |x| < kTanhSmall: relative error of the polynomial 4.2e-9.
constexpr float kTanh[5] = {-0.005717044696211815f, 0.02065058797597885f, -0.05374349653720856f, 0.13331490755081177f,
                            -0.3333328366279602f};
constexpr float kGeluScale = 1.5957691216f;  // 2 * sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715f;

static inline float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}

static inline float from_bits(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}

static inline uint32_t to_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

static inline float infinity() {
  return from_bits(0x7f800000u);
}
static inline float absolute(float x) {
  return from_bits(to_bits(x) & 0x7fffffffu);
}

/// 2^n * 2^f for integral n in [-120, 128] and |f| <= 1/2.
static inline float exp2_parts(float n, float f) {
  float p = kExp2[0];
  for (int i = 1; i < 5; ++i) p = fma(p, f, kExp2[i]);
  p = fma(p, f, 1.0f);
  return from_bits(to_bits(p) + (static_cast<uint32_t>(static_cast<int32_t>(n)) << 23));
}

/// 2^x for x <= 0; exactly 1 at 0, exactly 0 below -120.
static inline float exp2_nonpositive(float x) {
  if (x != x) return x;
  if (x < kExp2Low) return 0.0f;
  const float n = (x + kRoundMagic) - kRoundMagic;
  return exp2_parts(n, x - n);
}

/// e^x; exactly 1 at 0, exactly 0 below about -83.18, infinity above about 88.72.
static inline float exp(float x) {
  if (x != x) return x;
  const float t = x * kLog2e;
  if (t < kExp2Low) return 0.0f;
  if (t >= kExp2High) return infinity();
  const float n = (t + kRoundMagic) - kRoundMagic;
  return exp2_parts(n, fma(x, kLog2eLow, fma(x, kLog2e, -n)));
}

static inline float tanh(float x) {
  if (x != x) return x;
  const float a = absolute(x);
  if (a < kTanhSmall) {
    const float z = x * x;
    float p = kTanh[0];
    for (int i = 1; i < 5; ++i) p = fma(p, z, kTanh[i]);
    return fma(x * z, p, x);
  }
  const float e = exp(-2.0f * a);
  const float t = (1.0f - e) / (1.0f + e);
  return x < 0.0f ? -t : t;
}

/// x / (1 + e^-x); -0 for large negative x.
static inline float silu(float x) {
  return x / (1.0f + exp(-x));
}

/// x/2 * (1 + tanh(u)) with u = sqrt(2/pi) * (x + 0.044715 x^3), written as x / (1 + e^(-2u)): no cancellation.
static inline float gelu_tanh(float x) {
  const float cubic = fma(x * x, kGeluCubic, 1.0f);
  return x / (1.0f + exp(-((x * kGeluScale) * cubic)));
}

}  // namespace f32
}  // namespace pagoda
