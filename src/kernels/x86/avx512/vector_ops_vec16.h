#pragma once
// Sixteen F32 lanes in one 512-bit register. Included only by files compiled for AVX-512; internal linkage throughout.

// g++ 12 warns about the deliberately undefined operands inside its own header (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#include <stdint.h>

#include "kernels/simd/vec_macros.h"

namespace pagoda {
namespace {

struct Avx512Vec {
  __m512 v;

  static PAGODA_INLINE __mmask16 low_lanes(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
  static PAGODA_INLINE Avx512Vec zero() { return {_mm512_setzero_ps()}; }
  static PAGODA_INLINE Avx512Vec set(float x) { return {_mm512_set1_ps(x)}; }
  static PAGODA_INLINE Avx512Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
  PAGODA_INLINE void store(float* p) const { _mm512_storeu_ps(p, v); }
  /// The first n lanes (1..16); the others are zero and their memory is not touched.
  static PAGODA_INLINE Avx512Vec load_partial(const float* p, int n) {
    return {_mm512_maskz_loadu_ps(low_lanes(n), p)};
  }
  PAGODA_INLINE void store_partial(float* p, int n) const { _mm512_mask_storeu_ps(p, low_lanes(n), v); }
  /// Lanes n.. replaced by x.
  PAGODA_INLINE Avx512Vec fill_from(int n, float x) const {
    return {_mm512_mask_mov_ps(_mm512_set1_ps(x), low_lanes(n), v)};
  }

  /// Lanes n.. taken from o.
  PAGODA_INLINE Avx512Vec merge_from(int n, Avx512Vec o) const { return {_mm512_mask_mov_ps(o.v, low_lanes(n), v)}; }

  static PAGODA_INLINE Avx512Vec load_f16(const uint8_t* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  /// Sixteen pairs of BF16: the even and the odd element of each.
  static PAGODA_INLINE void load_bf16_pairs(const uint8_t* p, Avx512Vec& even, Avx512Vec& odd) {
    const __m512i x = _mm512_loadu_si512(p);
    even.v = _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
    odd.v = _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  PAGODA_INLINE void store_f16(uint16_t* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  /// The upper halves of the lanes: BF16 after round_bf16().
  PAGODA_INLINE void store_high16(uint16_t* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(v), 16)));
  }
  /// Rounded to BF16, nearest even, kept as F32; denormals become zero, NaN stays NaN.
  PAGODA_INLINE Avx512Vec round_bf16() const {
    const __m512i u = _mm512_castps_si512(v);
    const __m512i lsb = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    __m512i r = _mm512_add_epi32(u, _mm512_add_epi32(lsb, _mm512_set1_epi32(0x7fff)));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    r = _mm512_mask_or_epi32(r, nan, u, _mm512_set1_epi32(0x400000));
    const __mmask16 denormal = _mm512_testn_epi32_mask(u, _mm512_set1_epi32(0x7f800000));
    r = _mm512_mask_and_epi32(r, denormal, u, _mm512_set1_epi32(static_cast<int>(0x80000000u)));
    return {_mm512_castsi512_ps(_mm512_and_si512(r, _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
  }

  PAGODA_INLINE Avx512Vec operator+(Avx512Vec o) const { return {_mm512_add_ps(v, o.v)}; }
  PAGODA_INLINE Avx512Vec operator-(Avx512Vec o) const { return {_mm512_sub_ps(v, o.v)}; }
  PAGODA_INLINE Avx512Vec operator*(Avx512Vec o) const { return {_mm512_mul_ps(v, o.v)}; }
  PAGODA_INLINE Avx512Vec operator/(Avx512Vec o) const { return {_mm512_div_ps(v, o.v)}; }
  static PAGODA_INLINE Avx512Vec fma(Avx512Vec a, Avx512Vec b, Avx512Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  /// a > b ? a : b, so b when either is NaN; min likewise.
  static PAGODA_INLINE Avx512Vec max(Avx512Vec a, Avx512Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
  static PAGODA_INLINE Avx512Vec min(Avx512Vec a, Avx512Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
  /// a < b ? x : y per lane; y when either is NaN.
  static PAGODA_INLINE Avx512Vec select_less(Avx512Vec a, Avx512Vec b, Avx512Vec x, Avx512Vec y) {
    return {_mm512_mask_mov_ps(y.v, _mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), x.v)};
  }
  PAGODA_INLINE Avx512Vec round_even() const {
    return {_mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  /// this * 2^n for integral n.
  PAGODA_INLINE Avx512Vec scale_by_power(Avx512Vec n) const { return {_mm512_scalef_ps(v, n.v)}; }
  PAGODA_INLINE Avx512Vec magnitude() const { return {_mm512_abs_ps(v)}; }
  PAGODA_INLINE Avx512Vec with_sign_of(Avx512Vec o) const {  // this is not negative
    const __m512i sign = _mm512_and_si512(_mm512_castps_si512(o.v), _mm512_set1_epi32(static_cast<int>(0x80000000u)));
    return {_mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(v), sign))};
  }

  PAGODA_INLINE float tree_sum() const {
    const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
  }
  PAGODA_INLINE float tree_max() const {
    const __m256 a = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
  }

  /// 32 floats x0 y0 x1 y1 ... taken apart into x and y, and put together again.
  static PAGODA_INLINE void load_pairs(const float* p, Avx512Vec& x, Avx512Vec& y) {
    const __m512 a = _mm512_loadu_ps(p);
    const __m512 b = _mm512_loadu_ps(p + 16);
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    x.v = _mm512_permutex2var_ps(a, even, b);
    y.v = _mm512_permutex2var_ps(a, odd, b);
  }
  static PAGODA_INLINE void store_pairs(float* p, Avx512Vec x, Avx512Vec y) {
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    _mm512_storeu_ps(p, _mm512_permutex2var_ps(x.v, low, y.v));
    _mm512_storeu_ps(p + 16, _mm512_permutex2var_ps(x.v, high, y.v));
  }
};

}  // namespace
}  // namespace pagoda
