#pragma once
// Tiles for weight types in super-blocks of 256: Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_XS.
// Rule per super-block: t = float(sum of sc_j * dot_j) * d; with minima t = fma(-float(sum of m_j * sum_j), dmin, t);
// acc = fma(t, d_x, acc). The integers are exact.

#include "kernels/simd/matmul_group32.h"

namespace pagoda {
namespace {

/// How the offset of a type's unsigned weights is taken back.
enum class Correction {
  kMinima,  // none to take back; minima sub_min[j] instead
  kPairs,   // sum of sc_j * sum_j, times the offset, by int16 pairs: once per super-block
  kStart,   // start values made with the activations (offset 32, sums of 16)
};

/// What the head of a super-block gives: sub-scales as int32 lanes, then minima or sub-scales as int16 pairs in the
/// order of the activations' pair sums.
template <typename V>
struct SuperBlockHead {
  typename V::Ints sub_scale[16];
  typename V::Ints pairs[8];
  typename V::Floats scale;
  typename V::Floats min_scale;
};

// Four unsigned bytes of each dword as int32 lanes.
template <typename V>
static PAGODA_INLINE void widen_bytes(typename V::Ints bytes, typename V::Ints* out) {
  const typename V::Ints mask = V::set32(255);
  out[0] = V::and_bits(bytes, mask);
  out[1] = V::and_bits(V::template shift<8>(bytes), mask);
  out[2] = V::and_bits(V::template shift<16>(bytes), mask);
  out[3] = V::template shift<24>(bytes);
}

template <typename V>
static PAGODA_INLINE void widen_signed_bytes(typename V::Ints bytes, typename V::Ints* out) {
  out[0] = V::template shift_signed<24>(V::template shift<-24>(bytes));
  out[1] = V::template shift_signed<24>(V::template shift<-16>(bytes));
  out[2] = V::template shift_signed<24>(V::template shift<-8>(bytes));
  out[3] = V::template shift_signed<24>(bytes);
}

// Bytes 0..3 of a dword as the int16 pairs (0, 2) and (1, 3).
template <typename V>
static PAGODA_INLINE void pair_bytes(typename V::Ints bytes, typename V::Ints* out) {
  const typename V::Ints mask = V::set32(0x00ff00ff);
  out[0] = V::and_bits(bytes, mask);
  out[1] = V::and_bits(V::template shift<8>(bytes), mask);
}

template <typename V>
static PAGODA_INLINE void pair_signed_bytes(typename V::Ints bytes, typename V::Ints* out) {
  out[0] = V::template shift16_signed<8>(V::template shift16_left<8>(bytes));
  out[1] = V::template shift16_signed<8>(bytes);
}

template <typename V>
static PAGODA_INLINE void read_scale_and_min_scale(const uint8_t* line, SuperBlockHead<V>& head) {
  const typename V::Ints both = V::load(line);
  head.scale = V::f16_of_low_half(both);
  head.min_scale = V::f16_of_low_half(V::template shift<16>(both));
}

// ---- Sub-block j of 32 columns: vector i holds k = 32j + 4i ..+3. `lines` points to this half's part of the first
// line.

template <typename V, int j>
static PAGODA_INLINE void unpack_nibble_pairs(const uint8_t* quants, typename V::Ints* w) {
  for (int i = 0; i < 8; ++i) {
    const typename V::Ints bytes = V::load(quants + (j / 2 * 8 + i) * kLineBytes);
    w[i] = V::and_bits(V::template shift<j % 2 * 4>(bytes), V::set8(15));
  }
}

template <typename V, int j>
static PAGODA_INLINE void unpack_two_bits(const uint8_t* quants, typename V::Ints* w) {
  for (int i = 0; i < 8; ++i) {
    const typename V::Ints bytes = V::load(quants + (j / 4 * 8 + i) * kLineBytes);
    w[i] = V::and_bits(V::template shift<j % 4 * 2>(bytes), V::set8(3));
  }
}

// Bit `j` of each byte of eight plane lines becomes bit `to` of the weights.
template <typename V, int j, int to>
static PAGODA_INLINE void merge_plane_bit(const uint8_t* plane, typename V::Ints* w) {
  for (int i = 0; i < 8; ++i) {
    w[i] = V::merge(w[i], V::template shift<j - to>(V::load(plane + i * kLineBytes)), V::set8(1 << to));
  }
}

// Eight 6-bit scales and minima of Q4_K and Q5_K, from three dwords.
template <typename V>
static PAGODA_INLINE void read_six_bit_head(const uint8_t* lines, SuperBlockHead<V>& head) {
  read_scale_and_min_scale<V>(lines, head);
  const typename V::Ints a = V::load(lines + kLineBytes), b = V::load(lines + 2 * kLineBytes);
  const typename V::Ints c = V::load(lines + 3 * kLineBytes);
  const typename V::Ints low6 = V::set8(63), low4 = V::set8(15), high2 = V::set8(0x30);
  widen_bytes<V>(V::and_bits(a, low6), head.sub_scale);
  widen_bytes<V>(V::merge(V::and_bits(c, low4), V::template shift<2>(a), high2), head.sub_scale + 4);
  pair_bytes<V>(V::and_bits(b, low6), head.pairs);
  const typename V::Ints late_minima = V::and_bits(V::template shift<4>(c), low4);
  pair_bytes<V>(V::merge(late_minima, V::template shift<2>(b), high2), head.pairs + 2);
}

struct Q4KBlock {
  static constexpr int kLines = 36, kSubBlock = 32, kMaxWeight = 15, kOffsetShift = 0;
  static constexpr Correction kCorrection = Correction::kMinima;
  template <typename V>
  static PAGODA_INLINE void read_head(const uint8_t* lines, int, SuperBlockHead<V>& head) {
    read_six_bit_head<V>(lines, head);
  }
  template <typename V, int j>
  static PAGODA_INLINE void unpack(const uint8_t* lines, typename V::Ints* w) {
    unpack_nibble_pairs<V, j>(lines + 4 * kLineBytes, w);
  }
};

struct Q5KBlock {
  static constexpr int kLines = 44, kSubBlock = 32, kMaxWeight = 31, kOffsetShift = 0;
  static constexpr Correction kCorrection = Correction::kMinima;
  template <typename V>
  static PAGODA_INLINE void read_head(const uint8_t* lines, int, SuperBlockHead<V>& head) {
    read_six_bit_head<V>(lines, head);
  }
  template <typename V, int j>
  static PAGODA_INLINE void unpack(const uint8_t* lines, typename V::Ints* w) {
    unpack_nibble_pairs<V, j>(lines + 12 * kLineBytes, w);
    merge_plane_bit<V, j, 4>(lines + 4 * kLineBytes, w);
  }
};

struct Q2KBlock {
  static constexpr int kLines = 21, kSubBlock = 16, kMaxWeight = 3, kOffsetShift = 0;
  static constexpr Correction kCorrection = Correction::kMinima;
  template <typename V>
  static PAGODA_INLINE void read_head(const uint8_t* lines, int, SuperBlockHead<V>& head) {
    read_scale_and_min_scale<V>(lines, head);
    for (int i = 0; i < 4; ++i) {
      const typename V::Ints bytes = V::load(lines + (1 + i) * kLineBytes);
      widen_bytes<V>(V::and_bits(bytes, V::set8(15)), head.sub_scale + 4 * i);
      pair_bytes<V>(V::and_bits(V::template shift<4>(bytes), V::set8(15)), head.pairs + 2 * i);
    }
  }
  template <typename V, int j>
  static PAGODA_INLINE void unpack(const uint8_t* lines, typename V::Ints* w) {
    unpack_two_bits<V, j>(lines + 5 * kLineBytes, w);
  }
};

struct Q3KBlock {
  static constexpr int kLines = 28, kSubBlock = 16, kMaxWeight = 7, kOffsetShift = 2;  // offset 4
  static constexpr Correction kCorrection = Correction::kPairs;
  template <typename V>
  static PAGODA_INLINE void read_head(const uint8_t* lines, int half, SuperBlockHead<V>& head) {
    head.scale = V::load_f16(lines - half * 2 * V::kLanes);  // a half line: rows are 2 bytes apart
    using Ints = typename V::Ints;
    const Ints low4 = V::set8(15), bits2 = V::set8(0x30);
    const Ints a = V::load(lines + kLineBytes), b = V::load(lines + 2 * kLineBytes),
               c = V::load(lines + 3 * kLineBytes);
    const Ints six_bits[4] = {
        V::merge(V::and_bits(a, low4), V::template shift<-4>(c), bits2),
        V::merge(V::and_bits(b, low4), V::template shift<-2>(c), bits2),
        V::merge(V::and_bits(V::template shift<4>(a), low4), c, bits2),
        V::merge(V::and_bits(V::template shift<4>(b), low4), V::template shift<2>(c), bits2),
    };
    for (int i = 0; i < 4; ++i) {
      const Ints scales = V::add8(six_bits[i], V::set8(-32));
      widen_signed_bytes<V>(scales, head.sub_scale + 4 * i);
      pair_signed_bytes<V>(scales, head.pairs + 2 * i);
    }
  }
  template <typename V, int j>
  static PAGODA_INLINE void unpack(const uint8_t* lines, typename V::Ints* w) {
    unpack_two_bits<V, j>(lines + 12 * kLineBytes, w);
    merge_plane_bit<V, j, 2>(lines + 4 * kLineBytes, w);
  }
};

struct Q6KBlock {
  static constexpr int kLines = 53, kSubBlock = 16, kMaxWeight = 63, kOffsetShift = 5;
  static constexpr Correction kCorrection = Correction::kStart;
  template <typename V>
  static PAGODA_INLINE void read_head(const uint8_t* lines, int half, SuperBlockHead<V>& head) {
    head.scale = V::load_f16(lines - half * 2 * V::kLanes);
    for (int i = 0; i < 4; ++i) widen_signed_bytes<V>(V::load(lines + (1 + i) * kLineBytes), head.sub_scale + 4 * i);
  }
  template <typename V, int j>
  static PAGODA_INLINE void unpack(const uint8_t* lines, typename V::Ints* w) {
    constexpr int kQuarter = j % 4;
    const uint8_t* high = lines + (5 + j / 4 * 24) * kLineBytes;
    const uint8_t* low = high + (8 + kQuarter % 2 * 8) * kLineBytes;
    for (int i = 0; i < 8; ++i) {
      const typename V::Ints bytes = V::template shift<kQuarter / 2 * 4>(V::load(low + i * kLineBytes));
      const typename V::Ints bits = V::template shift<2 * kQuarter - 4>(V::load(high + i * kLineBytes));
      w[i] = V::merge(V::and_bits(bytes, V::set8(15)), bits, V::set8(0x30));
    }
  }
};

struct Iq4XsBlock {
  static constexpr int kLines = 34, kSubBlock = 32, kMaxWeight = 241, kOffsetShift = 7;
  static constexpr Correction kCorrection = Correction::kPairs;
  template <typename V, int j>
  static PAGODA_INLINE typename V::Ints sub_scale(typename V::Ints low, typename V::Ints high) {
    const typename V::Ints low4 = V::and_bits(V::template shift<4 * j>(low), V::set32(15));
    // `high` has d in its lower half: pair j of bits starts at 16 + 2j and goes to bit 4.
    return V::sub32(V::merge(low4, V::template shift<12 + 2 * j>(high), V::set32(0x30)), V::set32(32));
  }
  template <typename V>
  static PAGODA_INLINE void read_head(const uint8_t* lines, int, SuperBlockHead<V>& head) {
    const typename V::Ints high = V::load(lines), low = V::load(lines + kLineBytes);
    head.scale = V::f16_of_low_half(high);
    typename V::Ints* sc = head.sub_scale;
    sc[0] = sub_scale<V, 0>(low, high), sc[1] = sub_scale<V, 1>(low, high), sc[2] = sub_scale<V, 2>(low, high);
    sc[3] = sub_scale<V, 3>(low, high), sc[4] = sub_scale<V, 4>(low, high), sc[5] = sub_scale<V, 5>(low, high);
    sc[6] = sub_scale<V, 6>(low, high), sc[7] = sub_scale<V, 7>(low, high);
    for (int i = 0; i < 4; ++i) {
      const int first = i / 2 * 4 + i % 2;
      head.pairs[i] = V::merge(V::template shift<-16>(sc[first + 2]), sc[first], V::set32(0xffff));
    }
  }
  template <typename V, int j>
  static PAGODA_INLINE void unpack(const uint8_t* lines, typename V::Ints* w) {
    unpack_codebook<V>(lines + (2 + 4 * j) * kLineBytes, kIq4Codebook, w);
  }
};

/// One super-block's view of the activations of a tile.
struct SuperBlockAct {
  const uint8_t* q;       // column `column`, sub-block 0
  const uint8_t* fields;  // column `column`, field 0
  size_t stride;          // columns of the tile
  PAGODA_INLINE const uint8_t* sub_block(int j) const { return q + j * stride * 32; }
  PAGODA_INLINE const uint8_t* field(int f) const { return fields + f * stride * 4; }
};

template <typename V, typename Type, int kColumns, int j>
static PAGODA_INLINE void add_sub_block(const uint8_t* lines, const uint8_t* ahead, const SuperBlockAct& act, const SuperBlockHead<V>& head,
                                        typename V::Ints* sums) {
  // An eighth of the super-block per sub-block, at the distance of `ahead`.
  constexpr int kLinesEach = (Type::kLines + 7) / 8;
  prefetch_lines(ahead + j * kLinesEach * kLineBytes, kLinesEach);
  typename V::Ints w[8];
  Type::template unpack<V, j>(lines, w);
  const uint8_t* q = act.sub_block(j);
  PAGODA_UNROLL
  for (int c = 0; c < kColumns; ++c) {
    if constexpr (Type::kSubBlock == 32) {
      const typename V::Ints dot = dot_bytes<V, Type::kMaxWeight, 8>(V::zero(), w, q + c * 32);
      sums[c] = V::add32(sums[c], V::mul32(dot, head.sub_scale[j]));
    } else {
      typename V::Ints first = V::zero(), second = V::zero();
      if constexpr (Type::kCorrection == Correction::kStart) {
        first = V::broadcast32(act.field(kStartOf16Offset32 + 2 * j) + 4 * c);
        second = V::broadcast32(act.field(kStartOf16Offset32 + 2 * j + 1) + 4 * c);
      }
      first = dot_bytes<V, Type::kMaxWeight, 4>(first, w, q + c * 32);
      second = dot_bytes<V, Type::kMaxWeight, 4>(second, w + 4, q + c * 32 + 16);
      const typename V::Ints scaled = V::mul32(first, head.sub_scale[2 * j]);
      sums[c] = V::add32(sums[c], V::add32(scaled, V::mul32(second, head.sub_scale[2 * j + 1])));
    }
  }
  PAGODA_KEEP_ORDER();
}

// Sum over sub-blocks of pairs[] (minima or sub-scales) times the activations' sums, of column c.
template <typename V, typename Type>
static PAGODA_INLINE typename V::Ints pair_sum(const SuperBlockHead<V>& head, const SuperBlockAct& act, int c) {
  constexpr int kNumPairs = 128 / Type::kSubBlock;
  constexpr int kField = Type::kSubBlock == 32 ? kPairsOf32 : kPairsOf16;
  typename V::Ints sum = V::zero();
  PAGODA_UNROLL
  for (int p = 0; p < kNumPairs; ++p)
    sum = V::add_pairs(sum, head.pairs[p], V::broadcast32(act.field(kField + p) + 4 * c));
  return sum;
}

// acc is kept in memory (t.out): the integer sums need the registers.
template <typename V, typename Type, int kColumns>
static PAGODA_INLINE void super_block_half(const TileArgs& t, int half) {
  constexpr bool kMinima = Type::kCorrection == Correction::kMinima;
  constexpr bool kTakeBackOffset = Type::kCorrection == Correction::kPairs && !signed_weights<V, Type::kMaxWeight>();
  float* out = t.out + half * V::kLanes;
  for (int c = 0; c < kColumns; ++c) V::store_float(out + c * kPanelRows, V::fzero());
  const size_t act_bytes = static_cast<size_t>(t.tile_columns) * kGroup256ColumnBytes;
  for (int s = t.k_begin / kSuperBlockK; s < t.k_end / kSuperBlockK; ++s) {
    const uint8_t* lines = t.panel + static_cast<size_t>(s) * Type::kLines * kLineBytes + half * 4 * V::kLanes;
    const uint8_t* block_act = t.act + s * act_bytes;
    const SuperBlockAct act = {block_act + t.column * 32, block_act + t.tile_columns * kSuperBlockK + t.column * 4,
                               static_cast<size_t>(t.tile_columns)};
    const uint8_t* ahead = lines + t.prefetch_bytes;
    SuperBlockHead<V> head;
    Type::template read_head<V>(lines, half, head);
    typename V::Ints sums[kColumns];
    PAGODA_UNROLL
    for (int c = 0; c < kColumns; ++c) sums[c] = V::zero();
    add_sub_block<V, Type, kColumns, 0>(lines, ahead, act, head, sums),
        add_sub_block<V, Type, kColumns, 1>(lines, ahead, act, head, sums);
    add_sub_block<V, Type, kColumns, 2>(lines, ahead, act, head, sums),
        add_sub_block<V, Type, kColumns, 3>(lines, ahead, act, head, sums);
    add_sub_block<V, Type, kColumns, 4>(lines, ahead, act, head, sums),
        add_sub_block<V, Type, kColumns, 5>(lines, ahead, act, head, sums);
    add_sub_block<V, Type, kColumns, 6>(lines, ahead, act, head, sums),
        add_sub_block<V, Type, kColumns, 7>(lines, ahead, act, head, sums);
    PAGODA_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      if constexpr (kTakeBackOffset) {
        sums[c] = V::sub32(sums[c], V::template shift<-Type::kOffsetShift>(pair_sum<V, Type>(head, act, c)));
      }
      typename V::Floats term = V::mul(V::to_float(sums[c]), head.scale);
      if constexpr (kMinima) term = V::fnma(V::to_float(pair_sum<V, Type>(head, act, c)), head.min_scale, term);
      const typename V::Floats acc = V::load_float(out + c * kPanelRows);
      V::store_float(out + c * kPanelRows, V::fma(term, V::broadcast_float(act.field(kScale256) + 4 * c), acc));
    }
  }
}

template <typename V, typename Type, int kColumns>
static void super_block_tile(const TileArgs& t) {
  for (int half = 0; half < kPanelRows / V::kLanes; ++half) super_block_half<V, Type, kColumns>(t, half);
}

template <typename V, typename Type, int... kWidths>
constexpr TileTable super_block_table() {
  constexpr TileEntry kEntries[] = {{kWidths, super_block_tile<V, Type, kWidths>}...};
  return make_tile_table(kEntries, sizeof...(kWidths));
}

}  // namespace
}  // namespace pagoda
