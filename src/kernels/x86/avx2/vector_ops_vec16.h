#pragma once
// Sixteen F32 lanes as two 256-bit halves. Included only by files compiled for AVX2 + FMA + F16C; internal linkage.

#include <immintrin.h>
#include <stdint.h>

#include "kernels/simd/vec_macros.h"

namespace pagoda {
namespace {

struct Avx2Vec {
  __m256 lo;
  __m256 hi;

  static PAGODA_INLINE __m256i low_lanes(int n) {  // n outside 0..8 counts as the nearest
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static PAGODA_INLINE Avx2Vec zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static PAGODA_INLINE Avx2Vec set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static PAGODA_INLINE Avx2Vec load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  PAGODA_INLINE void store(float* p) const {
    _mm256_storeu_ps(p, lo);
    _mm256_storeu_ps(p + 8, hi);
  }
  /// The first n lanes (1..16); the others are zero and their memory is not touched.
  static PAGODA_INLINE Avx2Vec load_partial(const float* p, int n) {
    return {_mm256_maskload_ps(p, low_lanes(n)),
            n > 8 ? _mm256_maskload_ps(p + 8, low_lanes(n - 8)) : _mm256_setzero_ps()};
  }
  PAGODA_INLINE void store_partial(float* p, int n) const {
    _mm256_maskstore_ps(p, low_lanes(n), lo);
    if (n > 8) _mm256_maskstore_ps(p + 8, low_lanes(n - 8), hi);
  }
  /// Lanes n.. replaced by x.
  PAGODA_INLINE Avx2Vec fill_from(int n, float x) const {
    const __m256 f = _mm256_set1_ps(x);
    return {_mm256_blendv_ps(f, lo, _mm256_castsi256_ps(low_lanes(n))),
            _mm256_blendv_ps(f, hi, _mm256_castsi256_ps(low_lanes(n - 8)))};
  }

  /// Lanes n.. taken from o.
  PAGODA_INLINE Avx2Vec merge_from(int n, Avx2Vec o) const {
    return {_mm256_blendv_ps(o.lo, lo, _mm256_castsi256_ps(low_lanes(n))),
            _mm256_blendv_ps(o.hi, hi, _mm256_castsi256_ps(low_lanes(n - 8)))};
  }

  static PAGODA_INLINE Avx2Vec load_f16(const uint8_t* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16)))};
  }
  /// Sixteen pairs of BF16: the even and the odd element of each.
  static PAGODA_INLINE void load_bf16_pairs(const uint8_t* p, Avx2Vec& even, Avx2Vec& odd) {
    const __m256i mask = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
    even = {_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(b, 16))};
    odd = {_mm256_castsi256_ps(_mm256_and_si256(a, mask)), _mm256_castsi256_ps(_mm256_and_si256(b, mask))};
  }
  PAGODA_INLINE void store_f16(uint16_t* p) const {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(lo, kNearest));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(hi, kNearest));
  }
  /// The upper halves of the lanes: BF16 after round_bf16().
  PAGODA_INLINE void store_high16(uint16_t* p) const {
    const __m256i a = _mm256_srli_epi32(_mm256_castps_si256(lo), 16);
    const __m256i b = _mm256_srli_epi32(_mm256_castps_si256(hi), 16);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), _MM_SHUFFLE(3, 1, 2, 0));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), packed);
  }
  static PAGODA_INLINE __m256 round_bf16_half(__m256 x) {
    const __m256i u = _mm256_castps_si256(x);
    const __m256i lsb = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(u, _mm256_add_epi32(lsb, _mm256_set1_epi32(0x7fff)));
    const __m256 quiet = _mm256_or_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(0x400000)));
    __m256 r = _mm256_blendv_ps(_mm256_castsi256_ps(rounded), quiet, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m256i exponent = _mm256_and_si256(u, _mm256_set1_epi32(0x7f800000));
    const __m256i denormal = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
    const __m256 sign = _mm256_and_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0x80000000u))));
    r = _mm256_blendv_ps(r, sign, _mm256_castsi256_ps(denormal));
    return _mm256_and_ps(r, _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  /// Rounded to BF16, nearest even, kept as F32; denormals become zero, NaN stays NaN.
  PAGODA_INLINE Avx2Vec round_bf16() const { return {round_bf16_half(lo), round_bf16_half(hi)}; }

  PAGODA_INLINE Avx2Vec operator+(Avx2Vec o) const { return {_mm256_add_ps(lo, o.lo), _mm256_add_ps(hi, o.hi)}; }
  PAGODA_INLINE Avx2Vec operator-(Avx2Vec o) const { return {_mm256_sub_ps(lo, o.lo), _mm256_sub_ps(hi, o.hi)}; }
  PAGODA_INLINE Avx2Vec operator*(Avx2Vec o) const { return {_mm256_mul_ps(lo, o.lo), _mm256_mul_ps(hi, o.hi)}; }
  PAGODA_INLINE Avx2Vec operator/(Avx2Vec o) const { return {_mm256_div_ps(lo, o.lo), _mm256_div_ps(hi, o.hi)}; }
  static PAGODA_INLINE Avx2Vec fma(Avx2Vec a, Avx2Vec b, Avx2Vec c) {
    return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
  }
  /// a > b ? a : b, so b when either is NaN; min likewise.
  static PAGODA_INLINE Avx2Vec max(Avx2Vec a, Avx2Vec b) {
    return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
  }
  static PAGODA_INLINE Avx2Vec min(Avx2Vec a, Avx2Vec b) {
    return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
  }
  /// a < b ? x : y per lane; y when either is NaN.
  static PAGODA_INLINE Avx2Vec select_less(Avx2Vec a, Avx2Vec b, Avx2Vec x, Avx2Vec y) {
    return {_mm256_blendv_ps(y.lo, x.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
            _mm256_blendv_ps(y.hi, x.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
  }
  PAGODA_INLINE Avx2Vec round_even() const {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(lo, kNearest), _mm256_round_ps(hi, kNearest)};
  }
  static PAGODA_INLINE __m256 scale_half(__m256 p, __m256 n) {
    const __m256i e = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), e));
  }
  /// this * 2^n for integral n; this and the result are normal numbers (or the result is infinity).
  PAGODA_INLINE Avx2Vec scale_by_power(Avx2Vec n) const { return {scale_half(lo, n.lo), scale_half(hi, n.hi)}; }
  PAGODA_INLINE Avx2Vec magnitude() const {
    const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    return {_mm256_and_ps(lo, mask), _mm256_and_ps(hi, mask)};
  }
  PAGODA_INLINE Avx2Vec with_sign_of(Avx2Vec o) const {  // this is not negative
    const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0x80000000u)));
    return {_mm256_or_ps(lo, _mm256_and_ps(o.lo, mask)), _mm256_or_ps(hi, _mm256_and_ps(o.hi, mask))};
  }

  PAGODA_INLINE float tree_sum() const {
    const __m256 a = _mm256_add_ps(lo, hi);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
  }
  PAGODA_INLINE float tree_max() const {
    const __m256 a = _mm256_max_ps(lo, hi);
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
  }

  static PAGODA_INLINE __m256 even_half(__m256 a, __m256 b) {  // a0 a2 a4 a6 b0 b2 b4 b6
    const __m256 s = _mm256_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(s), _MM_SHUFFLE(3, 1, 2, 0)));
  }
  static PAGODA_INLINE __m256 odd_half(__m256 a, __m256 b) {
    const __m256 s = _mm256_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(s), _MM_SHUFFLE(3, 1, 2, 0)));
  }
  /// 32 floats x0 y0 x1 y1 ... taken apart into x and y, and put together again.
  static PAGODA_INLINE void load_pairs(const float* p, Avx2Vec& x, Avx2Vec& y) {
    const Avx2Vec a = load(p);
    const Avx2Vec b = load(p + 16);
    x = {even_half(a.lo, a.hi), even_half(b.lo, b.hi)};
    y = {odd_half(a.lo, a.hi), odd_half(b.lo, b.hi)};
  }
  static PAGODA_INLINE void store_pairs_half(float* p, __m256 x, __m256 y) {
    const __m256 low = _mm256_unpacklo_ps(x, y);
    const __m256 high = _mm256_unpackhi_ps(x, y);
    _mm256_storeu_ps(p, _mm256_permute2f128_ps(low, high, 0x20));
    _mm256_storeu_ps(p + 8, _mm256_permute2f128_ps(low, high, 0x31));
  }
  static PAGODA_INLINE void store_pairs(float* p, Avx2Vec x, Avx2Vec y) {
    store_pairs_half(p, x.lo, y.lo);
    store_pairs_half(p + 16, x.hi, y.hi);
  }
};

}  // namespace
}  // namespace pagoda
