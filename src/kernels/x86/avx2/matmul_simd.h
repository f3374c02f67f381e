#pragma once
// The vector operations of the matmul templates, 8 rows at a time: a panel is worked off as two halves.

#include <immintrin.h>
#include <string.h>

#include "kernels/simd/matmul_act.h"

namespace pagoda {
namespace {

struct Avx2 {
  using Ints = __m256i;
  using Floats = __m256;
  static constexpr int kLanes = 8;
  static constexpr bool kVnni = false;
  static constexpr int kMaxColumns = 4;  // 16 registers: more columns spill

  static PAGODA_INLINE Ints load(const uint8_t* p) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(p)); }
  static PAGODA_INLINE Ints zero() { return _mm256_setzero_si256(); }
  static PAGODA_INLINE Ints set8(int v) { return _mm256_set1_epi8(static_cast<char>(v)); }
  static PAGODA_INLINE Ints set16(int v) { return _mm256_set1_epi16(static_cast<short>(v)); }
  static PAGODA_INLINE Ints set32(int v) { return _mm256_set1_epi32(v); }
  static PAGODA_INLINE Ints broadcast32(const uint8_t* p) {
    int v;
    memcpy(&v, p, 4);
    return _mm256_set1_epi32(v);
  }
  static PAGODA_INLINE Floats broadcast_float(const uint8_t* p) { return _mm256_castsi256_ps(broadcast32(p)); }
  static PAGODA_INLINE Ints table16(const uint8_t* p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }

  static PAGODA_INLINE Ints and_bits(Ints a, Ints b) { return _mm256_and_si256(a, b); }
  static PAGODA_INLINE Ints or_bits(Ints a, Ints b) { return _mm256_or_si256(a, b); }
  static PAGODA_INLINE Ints xor_bits(Ints a, Ints b) { return _mm256_xor_si256(a, b); }
  static PAGODA_INLINE Ints merge(Ints a, Ints b, Ints mask) { return _mm256_or_si256(a, _mm256_and_si256(b, mask)); }
  template <int n>
  static PAGODA_INLINE Ints shift(Ints a) {
    if constexpr (n > 0) return _mm256_srli_epi32(a, n);
    if constexpr (n < 0) return _mm256_slli_epi32(a, -n);
    return a;
  }
  template <int n>
  static PAGODA_INLINE Ints shift_signed(Ints a) {
    return _mm256_srai_epi32(a, n);
  }
  template <int n>
  static PAGODA_INLINE Ints shift16_signed(Ints a) {
    return _mm256_srai_epi16(a, n);
  }
  template <int n>
  static PAGODA_INLINE Ints shift16_left(Ints a) {
    return _mm256_slli_epi16(a, n);
  }
  static PAGODA_INLINE Ints lookup(Ints table, Ints index) { return _mm256_shuffle_epi8(table, index); }
  static PAGODA_INLINE Ints add8(Ints a, Ints b) { return _mm256_add_epi8(a, b); }
  static PAGODA_INLINE Ints add16(Ints a, Ints b) { return _mm256_add_epi16(a, b); }
  static PAGODA_INLINE Ints add32(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
  static PAGODA_INLINE Ints sub32(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
  static PAGODA_INLINE Ints mul32(Ints a, Ints b) { return _mm256_mullo_epi32(a, b); }
  static PAGODA_INLINE Ints add_pairs(Ints acc, Ints a, Ints b) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b));
  }
  static PAGODA_INLINE Ints mul_pairs8(Ints unsigned_bytes, Ints signed_bytes) {
    return _mm256_maddubs_epi16(unsigned_bytes, signed_bytes);
  }
  static PAGODA_INLINE Ints abs8(Ints a) { return _mm256_abs_epi8(a); }
  static PAGODA_INLINE Ints apply_sign8(Ints b, Ints a) { return _mm256_sign_epi8(b, a); }

  static PAGODA_INLINE Floats to_float(Ints a) { return _mm256_cvtepi32_ps(a); }
  static PAGODA_INLINE Floats as_float(Ints a) { return _mm256_castsi256_ps(a); }
  static PAGODA_INLINE Ints as_ints(Floats a) { return _mm256_castps_si256(a); }
  static PAGODA_INLINE Floats fzero() { return _mm256_setzero_ps(); }
  static PAGODA_INLINE Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static PAGODA_INLINE Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  static PAGODA_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  static PAGODA_INLINE Floats fnma(Floats a, Floats b, Floats c) { return _mm256_fnmadd_ps(a, b, c); }
  static PAGODA_INLINE Floats load_float(const float* p) { return _mm256_loadu_ps(p); }
  static PAGODA_INLINE void store_float(float* p, Floats v) { _mm256_storeu_ps(p, v); }
  static PAGODA_INLINE Floats load_f16(const uint8_t* p) {
    return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static PAGODA_INLINE Floats load_upper_halves(const uint8_t* p) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
  static PAGODA_INLINE Floats f16_of_low_half(Ints a) {
    const __m256i low = _mm256_and_si256(a, _mm256_set1_epi32(0xffff));
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
  }

  static PAGODA_INLINE Ints max_unsigned(Ints a, Ints b) { return _mm256_max_epu32(a, b); }
  static PAGODA_INLINE uint32_t reduce_max_unsigned(Ints a) {
    __m128i v = _mm_max_epu32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    v = _mm_max_epu32(v, _mm_shuffle_epi32(v, 0x4e));
    v = _mm_max_epu32(v, _mm_shuffle_epi32(v, 0xb1));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(v));
  }
  static PAGODA_INLINE int reduce_add(Ints a) {
    __m128i v = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4e));
    v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0xb1));
    return _mm_cvtsi128_si32(v);
  }
  static PAGODA_INLINE Ints round_to_int(Floats a) { return _mm256_cvtps_epi32(a); }
  static PAGODA_INLINE void store_int8(uint8_t* p, Ints a) {
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
  }
};

}  // namespace
}  // namespace pagoda
