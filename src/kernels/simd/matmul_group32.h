#pragma once
// Tiles for weight types in groups of 32: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL, MXFP4.
// Rule per group: acc = fma(float(dot), d_w * d_x, acc), then with a minimum acc = fma(m, float(sum) * d_x, acc).

#include "kernels/simd/matmul_dot.h"

namespace pagoda {
namespace {

// Vector i of a group holds k = 4i..4i+3 of each row. Nibble types keep k < 16 in low halves, the rest in high halves.
template <typename V>
static PAGODA_INLINE void unpack_nibbles(const uint8_t* lines, typename V::Ints* w) {
  const typename V::Ints low_half = V::set8(15);
  for (int i = 0; i < 4; ++i) {
    const typename V::Ints bytes = V::load(lines + i * kLineBytes);
    w[i] = V::and_bits(bytes, low_half);
    w[4 + i] = V::and_bits(V::template shift<4>(bytes), low_half);
  }
}

// The fifth bit of vector i is bit i of each byte of the plane.
template <typename V, int i>
static PAGODA_INLINE void merge_fifth_bit(typename V::Ints plane, typename V::Ints* w) {
  w[i] = V::merge(w[i], V::template shift<i - 4>(plane), V::set8(16));
}

template <typename V>
static PAGODA_INLINE void unpack_five_bits(const uint8_t* lines, typename V::Ints* w) {
  unpack_nibbles<V>(lines + kLineBytes, w);
  const typename V::Ints plane = V::load(lines);
  merge_fifth_bit<V, 0>(plane, w), merge_fifth_bit<V, 1>(plane, w), merge_fifth_bit<V, 2>(plane, w);
  merge_fifth_bit<V, 3>(plane, w), merge_fifth_bit<V, 4>(plane, w), merge_fifth_bit<V, 5>(plane, w);
  merge_fifth_bit<V, 6>(plane, w), merge_fifth_bit<V, 7>(plane, w);
}

template <typename V>
static PAGODA_INLINE void unpack_codebook(const uint8_t* lines, const uint8_t* codebook, typename V::Ints* w) {
  unpack_nibbles<V>(lines, w);
  const typename V::Ints table = V::table16(codebook);
  for (int i = 0; i < 8; ++i) w[i] = V::lookup(table, w[i]);
}

// Codebook values plus the type's offset.
alignas(16) static constexpr uint8_t kIq4Codebook[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                                         129, 141, 153, 166, 181, 197, 217, 241};
alignas(16) static constexpr uint8_t kMxfp4Codebook[16] = {16, 17, 18, 19, 20, 22, 24, 28,
                                                           16, 15, 14, 13, 12, 10, 8,  4};

// One traits struct a type: scale bytes, payload lines, largest weight byte, start value, minimum, unpacking.
struct Q4_0Group {
  static constexpr int kScaleBytes = 2, kLines = 4, kMaxWeight = 15, kStart = kStartOffset8;
  template <typename V>
  static PAGODA_INLINE void unpack(const uint8_t* lines, typename V::Ints* w) {
    unpack_nibbles<V>(lines, w);
  }
  template <typename V>
  static PAGODA_INLINE typename V::Floats scale(const uint8_t* p) {
    return V::load_f16(p);
  }
};
struct Q4_1Group {
  static constexpr int kScaleBytes = 4, kLines = 4, kMaxWeight = 15, kStart = -1;
  template <typename V>
  static PAGODA_INLINE void unpack(const uint8_t* lines, typename V::Ints* w) {
    unpack_nibbles<V>(lines, w);
  }
};
struct Q5_0Group {
  static constexpr int kScaleBytes = 2, kLines = 5, kMaxWeight = 31, kStart = kStartOffset16;
  template <typename V>
  static PAGODA_INLINE void unpack(const uint8_t* lines, typename V::Ints* w) {
    unpack_five_bits<V>(lines, w);
  }
  template <typename V>
  static PAGODA_INLINE typename V::Floats scale(const uint8_t* p) {
    return V::load_f16(p);
  }
};
struct Q5_1Group {
  static constexpr int kScaleBytes = 4, kLines = 5, kMaxWeight = 31, kStart = -1;
  template <typename V>
  static PAGODA_INLINE void unpack(const uint8_t* lines, typename V::Ints* w) {
    unpack_five_bits<V>(lines, w);
  }
};
struct Q8_0Group {
  static constexpr int kScaleBytes = 2, kLines = 8, kMaxWeight = 255, kStart = kStartOffset128;
  template <typename V>
  static PAGODA_INLINE void unpack(const uint8_t* lines, typename V::Ints* w) {
    for (int i = 0; i < 8; ++i) w[i] = V::load(lines + i * kLineBytes);
  }
  template <typename V>
  static PAGODA_INLINE typename V::Floats scale(const uint8_t* p) {
    return V::load_f16(p);
  }
};
struct Iq4NlGroup {
  static constexpr int kScaleBytes = 2, kLines = 4, kMaxWeight = 241, kStart = kStartOffset128;
  template <typename V>
  static PAGODA_INLINE void unpack(const uint8_t* lines, typename V::Ints* w) {
    unpack_codebook<V>(lines, kIq4Codebook, w);
  }
  template <typename V>
  static PAGODA_INLINE typename V::Floats scale(const uint8_t* p) {
    return V::load_f16(p);
  }
};
struct Mxfp4Group {
  static constexpr int kScaleBytes = 2, kLines = 4, kMaxWeight = 28, kStart = kStartOffset16;
  template <typename V>
  static PAGODA_INLINE void unpack(const uint8_t* lines, typename V::Ints* w) {
    unpack_codebook<V>(lines, kMxfp4Codebook, w);
  }
  template <typename V>
  static PAGODA_INLINE typename V::Floats scale(const uint8_t* p) {
    return V::load_upper_halves(p);
  }
};

template <typename V, typename Type, int kColumns>
static PAGODA_INLINE void group32_half(const TileArgs& t, int half) {
  constexpr bool kHasMinimum = Type::kStart < 0;
  constexpr bool kNeedsStart = !kHasMinimum && !signed_weights<V, Type::kMaxWeight>();
  const int stride = t.tile_columns;
  const size_t group_bytes = static_cast<size_t>(stride) * kGroup32ColumnBytes;
  const uint8_t* act = t.act + (t.k_begin / kGroupK) * group_bytes;
  typename V::Floats acc[kColumns];
  PAGODA_UNROLL
  for (int c = 0; c < kColumns; ++c) acc[c] = V::fzero();
  for (int g = t.k_begin / kGroupK; g < t.k_end / kGroupK; ++g, act += group_bytes) {
    typename V::Ints w[8];
    const uint8_t* lines = t.panel + group_lines_offset(Type::kScaleBytes, Type::kLines, g);
    prefetch_lines(lines + t.prefetch_bytes, Type::kLines + 1);  // at distance 0 this costs next to nothing
    Type::template unpack<V>(lines + half * 4 * V::kLanes, w);
    const uint8_t* scales =
        t.panel + group_scales_offset(Type::kScaleBytes, Type::kLines, g) + half * Type::kScaleBytes * V::kLanes;
    typename V::Floats scale = V::fzero(), minimum = V::fzero();
    if constexpr (kHasMinimum) {
      const typename V::Ints both = V::load(scales);
      scale = V::f16_of_low_half(both);
      minimum = V::f16_of_low_half(V::template shift<16>(both));
    } else {
      scale = Type::template scale<V>(scales);
    }
    const uint8_t* q = act + t.column * kGroupK;
    const uint8_t* fields = act + stride * kGroupK + t.column * 4;
    const uint8_t* starts = fields + static_cast<size_t>(stride) * 4 * (kNeedsStart ? Type::kStart : 0);
    const uint8_t* scaled_sums = fields + static_cast<size_t>(stride) * 4 * kScaledSum32;
    PAGODA_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      typename V::Ints dot = V::zero();
      if constexpr (kNeedsStart) dot = V::broadcast32(starts + 4 * c);
      dot = dot_bytes<V, Type::kMaxWeight, 8>(dot, w, q + c * kGroupK);
      acc[c] = V::fma(V::to_float(dot), V::mul(scale, V::broadcast_float(fields + 4 * c)), acc[c]);
      if constexpr (kHasMinimum) acc[c] = V::fma(minimum, V::broadcast_float(scaled_sums + 4 * c), acc[c]);
    }
  }
  PAGODA_UNROLL
  for (int c = 0; c < kColumns; ++c) V::store_float(t.out + c * kPanelRows + half * V::kLanes, acc[c]);
}

template <typename V, typename Type, int kColumns>
static void group32_tile(const TileArgs& t) {
  for (int half = 0; half < kPanelRows / V::kLanes; ++half) group32_half<V, Type, kColumns>(t, half);
}

template <typename V, typename Type, int... kWidths>
constexpr TileTable group32_table() {
  constexpr TileEntry kEntries[] = {{kWidths, group32_tile<V, Type, kWidths>}...};
  return make_tile_table(kEntries, sizeof...(kWidths));
}

}  // namespace
}  // namespace pagoda
