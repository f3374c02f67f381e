#pragma once
// Sums of products of unsigned weight bytes and signed activation bytes, exact in int32 on every instruction set.

#include "kernels/simd/matmul_act.h"

namespace pagoda {
namespace {

// How many 16-bit sums of byte pairs can be added before one may overflow; 0: a single one may (weights above 127).
constexpr int safe_run(int max_weight) {
  return 32767 / (2 * 127 * max_weight);
}

/// start + sum over i < kCount of w[i] . x[4i..4i+3], in every lane. `kMaxWeight` bounds the weight bytes.
/// Without VNNI, weights above 127 are taken as bytes with offset 128 and the start value, which undoes that offset, is
/// not needed: see signed_weights.
template <typename V, int kMaxWeight, int kCount>
static PAGODA_INLINE typename V::Ints dot_bytes(typename V::Ints start, const typename V::Ints* w, const uint8_t* x) {
  using Ints = typename V::Ints;
  if constexpr (V::kVnni) {
    Ints sum = start;
    PAGODA_UNROLL
    for (int i = 0; i < kCount; ++i) sum = V::add_quads(sum, w[i], V::broadcast32(x + 4 * i));
    return sum;
  } else if constexpr (safe_run(kMaxWeight) > 0) {
    constexpr int kRun = safe_run(kMaxWeight) < kCount ? safe_run(kMaxWeight) : kCount;
    Ints sum = start, run = V::zero();
    PAGODA_UNROLL
    for (int i = 0; i < kCount; ++i) {
      const Ints products = V::mul_pairs8(w[i], V::broadcast32(x + 4 * i));
      run = i % kRun == 0 ? products : V::add16(run, products);
      if (i % kRun == kRun - 1 || i == kCount - 1) sum = V::add_pairs(sum, run, V::set16(1));
    }
    return sum;
  } else {
    // |w| <= 128 and |x| <= 127, so a pair stays within 2 * 128 * 127 = 32512.
    Ints sum = V::zero();
    PAGODA_UNROLL
    for (int i = 0; i < kCount; ++i) {
      const Ints signed_w = V::xor_bits(w[i], V::set8(0x80));
      const Ints signed_x = V::apply_sign8(V::broadcast32(x + 4 * i), signed_w);
      sum = V::add_pairs(sum, V::mul_pairs8(V::abs8(signed_w), signed_x), V::set16(1));
    }
    return sum;
  }
}

/// Whether dot_bytes gives the dot product of (weight - 128) without help from a start value.
template <typename V, int kMaxWeight>
constexpr bool signed_weights() {
  return !V::kVnni && safe_run(kMaxWeight) == 0;
}

}  // namespace
}  // namespace pagoda
