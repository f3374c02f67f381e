#pragma once
// The vector operations of the matmul templates, 16 rows at a time. kVnni selects vpdpbusd over its three-instruction
// equivalent.

// g++ 12 takes the undefined vectors of its own intrinsics for uninitialised variables.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#include <string.h>

#include "kernels/simd/matmul_act.h"

namespace pagoda {
namespace {

template <bool kVnniDot>
struct Avx512 {
  using Ints = __m512i;
  using Floats = __m512;
  static constexpr int kLanes = 16;
  static constexpr bool kVnni = kVnniDot;
  static constexpr int kMaxColumns = 16;  // 8 weight, 16 accumulator and a few temporary registers of 32

  static PAGODA_INLINE Ints load(const uint8_t* p) { return _mm512_load_si512(p); }
  static PAGODA_INLINE Ints zero() { return _mm512_setzero_si512(); }
  static PAGODA_INLINE Ints set8(int v) { return _mm512_set1_epi8(static_cast<char>(v)); }
  static PAGODA_INLINE Ints set16(int v) { return _mm512_set1_epi16(static_cast<short>(v)); }
  static PAGODA_INLINE Ints set32(int v) { return _mm512_set1_epi32(v); }
  static PAGODA_INLINE Ints broadcast32(const uint8_t* p) {
    int v;
    memcpy(&v, p, 4);
    return _mm512_set1_epi32(v);
  }
  static PAGODA_INLINE Floats broadcast_float(const uint8_t* p) { return _mm512_castsi512_ps(broadcast32(p)); }
  static PAGODA_INLINE Ints table16(const uint8_t* p) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }

  static PAGODA_INLINE Ints and_bits(Ints a, Ints b) { return _mm512_and_si512(a, b); }
  static PAGODA_INLINE Ints or_bits(Ints a, Ints b) { return _mm512_or_si512(a, b); }
  static PAGODA_INLINE Ints xor_bits(Ints a, Ints b) { return _mm512_xor_si512(a, b); }
  // a | (b & mask)
  static PAGODA_INLINE Ints merge(Ints a, Ints b, Ints mask) { return _mm512_ternarylogic_epi32(a, b, mask, 0xF8); }
  // Right by n bits within dwords; left where n is negative.
  template <int n>
  static PAGODA_INLINE Ints shift(Ints a) {
    if constexpr (n > 0) return _mm512_srli_epi32(a, n);
    if constexpr (n < 0) return _mm512_slli_epi32(a, -n);
    return a;
  }
  template <int n>
  static PAGODA_INLINE Ints shift_signed(Ints a) {
    return _mm512_srai_epi32(a, n);
  }
  template <int n>
  static PAGODA_INLINE Ints shift16_signed(Ints a) {
    return _mm512_srai_epi16(a, n);
  }
  template <int n>
  static PAGODA_INLINE Ints shift16_left(Ints a) {
    return _mm512_slli_epi16(a, n);
  }
  static PAGODA_INLINE Ints lookup(Ints table, Ints index) { return _mm512_shuffle_epi8(table, index); }
  static PAGODA_INLINE Ints add8(Ints a, Ints b) { return _mm512_add_epi8(a, b); }
  static PAGODA_INLINE Ints add16(Ints a, Ints b) { return _mm512_add_epi16(a, b); }
  static PAGODA_INLINE Ints add32(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  static PAGODA_INLINE Ints sub32(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
  static PAGODA_INLINE Ints mul32(Ints a, Ints b) { return _mm512_mullo_epi32(a, b); }
  static PAGODA_INLINE Ints add_pairs(Ints acc, Ints a, Ints b) {
    if constexpr (kVnni)
      return _mm512_dpwssd_epi32(acc, a, b);
    else
      return _mm512_add_epi32(acc, _mm512_madd_epi16(a, b));
  }
  static PAGODA_INLINE Ints add_quads(Ints acc, Ints unsigned_bytes, Ints signed_bytes) {
    return _mm512_dpbusd_epi32(acc, unsigned_bytes, signed_bytes);
  }
  static PAGODA_INLINE Ints mul_pairs8(Ints unsigned_bytes, Ints signed_bytes) {
    return _mm512_maddubs_epi16(unsigned_bytes, signed_bytes);
  }
  static PAGODA_INLINE Ints abs8(Ints a) { return _mm512_abs_epi8(a); }
  // b with the sign of a (a zero byte of `a` may give any value: its magnitude is zero).
  static PAGODA_INLINE Ints apply_sign8(Ints b, Ints a) {
    return _mm512_mask_sub_epi8(b, _mm512_movepi8_mask(a), _mm512_setzero_si512(), b);
  }

  static PAGODA_INLINE Floats to_float(Ints a) { return _mm512_cvtepi32_ps(a); }
  static PAGODA_INLINE Floats as_float(Ints a) { return _mm512_castsi512_ps(a); }
  static PAGODA_INLINE Ints as_ints(Floats a) { return _mm512_castps_si512(a); }
  static PAGODA_INLINE Floats fzero() { return _mm512_setzero_ps(); }
  static PAGODA_INLINE Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static PAGODA_INLINE Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static PAGODA_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static PAGODA_INLINE Floats fnma(Floats a, Floats b, Floats c) { return _mm512_fnmadd_ps(a, b, c); }
  static PAGODA_INLINE Floats load_float(const float* p) { return _mm512_loadu_ps(p); }
  static PAGODA_INLINE void store_float(float* p, Floats v) { _mm512_storeu_ps(p, v); }
  // 16 F16 values at p.
  static PAGODA_INLINE Floats load_f16(const uint8_t* p) {
    return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
  }
  // 16-bit patterns at p as the upper halves of F32 values.
  static PAGODA_INLINE Floats load_upper_halves(const uint8_t* p) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
  }
  // The F16 in the low half of each dword.
  static PAGODA_INLINE Floats f16_of_low_half(Ints a) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(a)); }

  // ---- Quantisation of activations.
  static PAGODA_INLINE Ints max_unsigned(Ints a, Ints b) { return _mm512_max_epu32(a, b); }
  static PAGODA_INLINE uint32_t reduce_max_unsigned(Ints a) { return _mm512_reduce_max_epu32(a); }
  static PAGODA_INLINE int reduce_add(Ints a) { return _mm512_reduce_add_epi32(a); }
  static PAGODA_INLINE Ints round_to_int(Floats a) { return _mm512_cvtps_epi32(a); }
  // kLanes int32 as saturated int8.
  static PAGODA_INLINE void store_int8(uint8_t* p, Ints a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(a));
  }
};

}  // namespace
}  // namespace pagoda
