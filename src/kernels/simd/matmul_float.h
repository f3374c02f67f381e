#pragma once
// Tiles for F32, F16 and BF16 weights. F32 and F16: acc = fma(w, x, acc), k rising. BF16: pairs of k, odd member first.

#include "kernels/simd/matmul_group32.h"

namespace pagoda {
namespace {

struct F32Weights {
  static constexpr int kStepK = 1, kStepBytes = 64;
  template <typename V>
  static PAGODA_INLINE typename V::Ints load(const uint8_t* p, int half) {
    return V::load(p + half * 4 * V::kLanes);
  }
  template <typename V>
  static PAGODA_INLINE typename V::Floats step(typename V::Ints w, const uint8_t* x, typename V::Floats acc) {
    return V::fma(V::as_float(w), V::broadcast_float(x), acc);
  }
  template <typename V>
  static constexpr int x_bytes() {
    return 4;
  }
};

struct F16Weights {
  static constexpr int kStepK = 1, kStepBytes = 32;
  template <typename V>
  static PAGODA_INLINE typename V::Ints load(const uint8_t* p, int half) {
    return V::as_ints(V::load_f16(p + half * 2 * V::kLanes));
  }
  template <typename V>
  static PAGODA_INLINE typename V::Floats step(typename V::Ints w, const uint8_t* x, typename V::Floats acc) {
    return V::fma(V::as_float(w), V::broadcast_float(x), acc);
  }
  template <typename V>
  static constexpr int x_bytes() {
    return 4;
  }
};

/// BF16 by two fused multiply-adds.
struct Bf16Weights {
  static constexpr int kStepK = 2, kStepBytes = 64;
  template <typename V>
  static PAGODA_INLINE typename V::Ints load(const uint8_t* p, int half) {
    return V::load(p + half * 4 * V::kLanes);
  }
  template <typename V>
  static PAGODA_INLINE typename V::Floats step(typename V::Ints w, const uint8_t* x, typename V::Floats acc) {
    const typename V::Floats odd = V::as_float(V::and_bits(w, V::set32(static_cast<int>(0xffff0000u))));
    const typename V::Floats even = V::as_float(V::template shift<-16>(w));
    return V::fma(even, V::broadcast_float(x + 4), V::fma(odd, V::broadcast_float(x), acc));
  }
  template <typename V>
  static constexpr int x_bytes() {
    return 8;
  }
};

template <typename V, typename Type, int kPanels, int kColumns>
static PAGODA_INLINE void float_half(const TileArgs& t, int half) {
  typename V::Floats acc[kPanels][kColumns];
  PAGODA_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    PAGODA_UNROLL
    for (int c = 0; c < kColumns; ++c) acc[p][c] = V::fzero();
  }
  constexpr int kXBytes = Type::template x_bytes<V>();
  const size_t x_step = static_cast<size_t>(t.tile_columns) * kXBytes;
  const int step_begin = t.k_begin / Type::kStepK, step_end = t.k_end / Type::kStepK;
  const uint8_t* x = t.act + step_begin * x_step + t.column * kXBytes;
  const uint8_t* weights = t.panel + static_cast<size_t>(step_begin) * Type::kStepBytes;
  for (int i = step_begin; i < step_end; ++i, x += x_step, weights += Type::kStepBytes) {
    typename V::Ints w[kPanels];
    PAGODA_UNROLL
    for (int p = 0; p < kPanels; ++p) w[p] = Type::template load<V>(weights + p * t.panel_bytes, half);
    PAGODA_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      PAGODA_UNROLL
      for (int p = 0; p < kPanels; ++p) acc[p][c] = Type::template step<V>(w[p], x + c * kXBytes, acc[p][c]);
    }
  }
  PAGODA_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    PAGODA_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      V::store_float(t.out + (p * kActTileRows + c) * kPanelRows + half * V::kLanes, acc[p][c]);
    }
  }
}

template <typename V, typename Type, int kPanels, int kColumns>
static void float_tile(const TileArgs& t) {
  for (int half = 0; half < kPanelRows / V::kLanes; ++half) float_half<V, Type, kPanels, kColumns>(t, half);
}

template <typename V, typename Type, int kPanels, int... kWidths>
constexpr TileTable float_table() {
  constexpr TileEntry kEntries[] = {{kWidths, float_tile<V, Type, kPanels, kWidths>}...};
  return make_tile_table(kEntries, sizeof...(kWidths));
}

}  // namespace
}  // namespace pagoda
