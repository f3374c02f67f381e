#pragma once
// One tile of flash attention: R rows (query position x head) against 64 tokens. Over any level L, which gives
//   L::Vec                              sixteen F32 lanes
//   L::kPairDot, L::dot_pairs(acc, word, p)  whether the level has vdpbf16ps, and acc + pair . pairs at p
//   L::columns(type, rows)              vectors of a register tile; L::max_rows(type), L::prefill_rows(type)
// Included only by files of one instruction set; internal linkage throughout.

#include "kernels/reference/attention_rule.h"
#include "kernels/simd/vector_ops.h"

namespace pagoda {
namespace {

constexpr int kTilePanels = kAttentionTile / kKvPanelTokens;
constexpr int kMaxTileRows = 8;
constexpr uint32_t kBf16Ones = 0x3f803f80u;

/// Which lines of the next tile an accumulation fetches while it reads the same lines of this one.
enum class Prefetch { kNone, kRows, kColumns };

struct TileArgs {
  const uint32_t* query;               // packed rows, key_dim words apart
  const uint8_t* panels[kTilePanels];  // slabs; only [panel_begin, panel_end) are valid
  const uint8_t* next[kTilePanels];    // slabs to prefetch
  int32_t panel_begin, panel_end;      // panels that some row sees
  int32_t seen_begin[kMaxTileRows];    // tokens of the tile that each row sees; read when masked
  int32_t seen_end[kMaxTileRows];
  bool masked;
  float cap;  // soft_cap * log2e, 0: none
  int32_t key_dim, value_dim;
  size_t key_bytes;
  float* maximum;  // [R]
  float* sums;     // [R][16]
  float* values;   // [R][value_dim]
};

template <class L>
PAGODA_INLINE typename L::Vec broadcast(const uint32_t* word) {
  float f;
  memcpy(&f, word, 4);
  return L::Vec::set(f);
}

template <KvType type>
constexpr bool kIsBf16 = type == KvType::kBF16;

/// Words that n reduction elements of a packed query or weight row take.
template <class L, KvType type>
constexpr int words(int n) {
  return kIsBf16<type> && L::kPairDot ? n / 2 : n;
}

/// acc[r][c] += sum over i of a[r][i] * column vector c of row i; n rows (or n/2 pair rows), row_bytes apart.
template <class L, KvType type, int R, int C, Prefetch kFetch>
PAGODA_INLINE void accumulate(typename L::Vec (&acc)[R][C], const uint32_t* a, int32_t a_stride,
                              const uint8_t* const (&columns)[C], size_t row_bytes, int32_t n,
                              const uint8_t* const (&next)[C]) {
  using V = typename L::Vec;
  const int32_t num_steps = kIsBf16<type> ? n / 2 : n;
  for (int32_t i = 0; i < num_steps; ++i) {
    const size_t at = static_cast<size_t>(i) * row_bytes;
    if constexpr (kFetch != Prefetch::kNone) {
      PAGODA_UNROLL
      for (int c = 0; c < C; ++c) {
        // An F16 vector is half a cache line: its neighbour (the next row, or the next column) fetches the other half.
        const bool other_half = type == KvType::kF16 && (kFetch == Prefetch::kRows ? (i & 1) : (c & 1)) != 0;
        if (!other_half) __builtin_prefetch(next[c] + at, 0, 2);
      }
    }
    if constexpr (kIsBf16<type> && L::kPairDot) {
      typename L::Pairs x[C];
      PAGODA_UNROLL
      for (int c = 0; c < C; ++c) x[c] = L::load_pairs(columns[c] + at);
      PAGODA_UNROLL
      for (int r = 0; r < R; ++r) {
        const typename L::Pairs b = L::broadcast_pair(a + r * a_stride + i);
        PAGODA_UNROLL
        for (int c = 0; c < C; ++c) acc[r][c] = L::dot_pairs(acc[r][c], b, x[c]);
      }
    } else if constexpr (kIsBf16<type>) {
      V even[C];
      V odd[C];
      PAGODA_UNROLL
      for (int c = 0; c < C; ++c) V::load_bf16_pairs(columns[c] + at, even[c], odd[c]);
      PAGODA_UNROLL
      for (int r = 0; r < R; ++r) {
        const V b_odd = broadcast<L>(a + r * a_stride + 2 * i + 1);
        const V b_even = broadcast<L>(a + r * a_stride + 2 * i);
        PAGODA_UNROLL
        for (int c = 0; c < C; ++c) acc[r][c] = V::fma(b_even, even[c], V::fma(b_odd, odd[c], acc[r][c]));
      }
    } else {
      V x[C];
      PAGODA_UNROLL
      for (int c = 0; c < C; ++c) {
        x[c] = type == KvType::kF16 ? V::load_f16(columns[c] + at)
                                    : V::load(reinterpret_cast<const float*>(columns[c] + at));
      }
      PAGODA_UNROLL
      for (int r = 0; r < R; ++r) {
        const V b = broadcast<L>(a + r * a_stride + i);
        PAGODA_UNROLL
        for (int c = 0; c < C; ++c) acc[r][c] = V::fma(b, x[c], acc[r][c]);
      }
    }
  }
}

template <KvType type>
constexpr size_t kElementBytes = type == KvType::kF32 ? 4 : 2;
/// Bytes between reduction rows of a part that is `width` elements wide.
template <KvType type>
constexpr size_t row_bytes_of(size_t width) {
  return width * kElementBytes<type> * (kIsBf16<type> ? 2 : 1);
}

/// Scores of panels [panel, panel + C) for R rows; score row stride: 64.
template <class L, KvType type, int R, int C, bool kFetch>
PAGODA_INLINE void score_panels(const TileArgs& t, int32_t panel, float* scores) {
  using V = typename L::Vec;
  V acc[R][C];
  const uint8_t* columns[C];
  const uint8_t* next[C];
  PAGODA_UNROLL
  for (int c = 0; c < C; ++c) {
    columns[c] = t.panels[panel + c];
    next[c] = kFetch ? t.next[panel + c] : nullptr;
  }
  PAGODA_UNROLL
  for (int r = 0; r < R; ++r) {
    PAGODA_UNROLL
    for (int c = 0; c < C; ++c) acc[r][c] = V::zero();
  }
  accumulate<L, type, R, C, kFetch ? Prefetch::kRows : Prefetch::kNone>(
      acc, t.query, t.key_dim, columns, row_bytes_of<type>(kKvPanelTokens), t.key_dim, next);
  PAGODA_UNROLL
  for (int r = 0; r < R; ++r) {
    PAGODA_UNROLL
    for (int c = 0; c < C; ++c) acc[r][c].store(scores + r * kAttentionTile + (panel + c) * kKvPanelTokens);
  }
}

template <class V>
PAGODA_INLINE V soft_capped(V s, float cap) {
  const V e = exp2_nonpositive(V::zero() - s.magnitude());
  return ((V::set(1.0f) - e) / (V::set(1.0f) + e)).with_sign_of(s) * V::set(cap);
}

/// Lanes outside [begin, end) become -inf.
template <class V>
PAGODA_INLINE V masked_lanes(V s, int32_t begin, int32_t end) {
  const V minus_infinity = V::set(-f32::infinity());
  const int32_t high = end < 0 ? 0 : (end > kLanes ? kLanes : end);
  s = s.fill_from(high, -f32::infinity());
  if (begin <= 0) return s;
  if (begin >= kLanes) return minus_infinity;
  return minus_infinity.merge_from(begin, s);
}

/// p = 2^(s - maximum) in place, packed for accumulate(); returns lanes + their sums.
template <class L, KvType type>
PAGODA_INLINE typename L::Vec exponentials(float* scores, int32_t n, float maximum, typename L::Vec lanes) {
  using V = typename L::Vec;
  const V m = V::set(maximum);
  for (int32_t t = 0; t < n; t += 2 * kLanes) {
    const V p0 = exp2_nonpositive(V::load(scores + t) - m);
    const V p1 = exp2_nonpositive(V::load(scores + t + kLanes) - m);
    if constexpr (!kIsBf16<type>) {
      lanes = (lanes + p0) + p1;
      p0.store(scores + t);
      p1.store(scores + t + kLanes);
    } else if constexpr (L::kPairDot) {
      const typename L::Pairs pairs = L::round_pairs(p0, p1);
      lanes = L::dot_pairs(lanes, L::broadcast_pair(&kBf16Ones), pairs);
      L::store_pairs(reinterpret_cast<uint32_t*>(scores) + t / 2, pairs);
    } else {
      p0.round_bf16().store(scores + t);
      p1.round_bf16().store(scores + t + kLanes);
      V even;
      V odd;
      V::load_pairs(scores + t, even, odd);
      lanes = (lanes + odd) + even;
    }
  }
  return lanes;
}

/// Scores to weights, and the running maximum and sums of each row; alpha[r] = the factor of the older state.
template <class L, KvType type, int R>
PAGODA_INLINE void softmax_rows(const TileArgs& t, float* scores, float* alpha) {
  using V = typename L::Vec;
  float largest[kLanes] = {};
  PAGODA_UNROLL
  for (int r = 0; r < R; ++r) {
    const float* row = scores + r * kAttentionTile;
    V most = V::load(row);
    PAGODA_UNROLL
    for (int v = 1; v < kTilePanels; ++v) most = V::max(most, V::load(row + v * kLanes));
    const float tile_largest = most.tree_max();
    largest[r] = tile_largest > t.maximum[r] ? tile_largest : t.maximum[r];
    alpha[r] = t.maximum[r] - largest[r];
    t.maximum[r] = largest[r];
  }
  exp2_nonpositive(V::load(alpha)).store(alpha);
  PAGODA_UNROLL
  for (int r = 0; r < R; ++r) {
    const V older = V::load(t.sums + r * kLanes) * V::set(alpha[r]);
    exponentials<L, type>(scores + r * kAttentionTile, kAttentionTile, largest[r], older).store(t.sums + r * kLanes);
  }
}

/// values[r][16 * column ...] = values * alpha + weights . V for C vectors of dims.
template <class L, KvType type, int R, int C, bool kFetch>
PAGODA_INLINE void value_columns(const TileArgs& t, int32_t column, const uint32_t* weights, const float* alpha) {
  using V = typename L::Vec;
  constexpr int kStride = kAttentionTile;
  const size_t row_bytes = row_bytes_of<type>(t.value_dim);
  const size_t vector_bytes = row_bytes_of<type>(kLanes);
  float* out = t.values + column * kLanes;
  V acc[R][C];
  PAGODA_UNROLL
  for (int r = 0; r < R; ++r) {
    const V a = V::set(alpha[r]);
    PAGODA_UNROLL
    for (int c = 0; c < C; ++c) acc[r][c] = V::load(out + r * t.value_dim + c * kLanes) * a;
  }
  for (int32_t p = t.panel_begin; p < t.panel_end; ++p) {
    const uint8_t* columns[C];
    const uint8_t* next[C];
    PAGODA_UNROLL
    for (int c = 0; c < C; ++c) {
      const size_t at = t.key_bytes + (column + c) * vector_bytes;
      columns[c] = t.panels[p] + at;
      next[c] = kFetch ? t.next[p] + at : nullptr;
    }
    accumulate<L, type, R, C, kFetch ? Prefetch::kColumns : Prefetch::kNone>(
        acc, weights + words<L, type>(p * kKvPanelTokens), kStride, columns, row_bytes, kKvPanelTokens, next);
  }
  PAGODA_UNROLL
  for (int r = 0; r < R; ++r) {
    PAGODA_UNROLL
    for (int c = 0; c < C; ++c) acc[r][c].store(out + r * t.value_dim + c * kLanes);
  }
}

template <class L, KvType type, int R, bool kFetch>
PAGODA_INLINE void score_tile(const TileArgs& t, float* scores) {
  constexpr int C = L::columns(type, R);
  int32_t p = t.panel_begin;
  for (; p + C <= t.panel_end; p += C) score_panels<L, type, R, C, kFetch>(t, p, scores);
  for (; p < t.panel_end; ++p) score_panels<L, type, R, 1, kFetch>(t, p, scores);
}

/// Soft-cap and mask, on the scores in memory.
template <class L>
PAGODA_INLINE void adjust_scores(const TileArgs& t, int num_rows, float* scores) {
  using V = typename L::Vec;
  for (int r = 0; r < num_rows; ++r) {
    for (int32_t p = 0; p < kTilePanels; ++p) {
      float* s = scores + r * kAttentionTile + p * kKvPanelTokens;
      const bool unseen = p < t.panel_begin || p >= t.panel_end;
      V x = unseen ? V::set(-f32::infinity()) : V::load(s);
      if (!unseen && t.cap != 0.0f) x = soft_capped(x, t.cap);
      if (!unseen && t.masked) {
        x = masked_lanes(x, t.seen_begin[r] - p * kKvPanelTokens, t.seen_end[r] - p * kKvPanelTokens);
      }
      x.store(s);
    }
  }
}

template <class L, KvType type, int R, bool kFetch>
void run_tile(const TileArgs& t) {
  alignas(64) float scores[R * kAttentionTile];
  alignas(64) float alpha[kLanes] = {};
  score_tile<L, type, R, kFetch>(t, scores);
  if (t.masked || t.cap != 0.0f) adjust_scores<L>(t, R, scores);
  softmax_rows<L, type, R>(t, scores, alpha);
  constexpr int C = L::columns(type, R);
  const auto* weights = reinterpret_cast<const uint32_t*>(scores);
  const int32_t num_columns = t.value_dim / kLanes;
  int32_t c = 0;
  for (; c + C <= num_columns; c += C) value_columns<L, type, R, C, kFetch>(t, c, weights, alpha);
  if constexpr (C == 4) {
    for (; c + 2 <= num_columns; c += 2) value_columns<L, type, R, 2, kFetch>(t, c, weights, alpha);
  }
  for (; c < num_columns; ++c) value_columns<L, type, R, 1, kFetch>(t, c, weights, alpha);
}

template <class L, KvType type, bool kFetch>
void run_tile_rows(int num_rows, const TileArgs& t) {
  switch (num_rows) {
    case 1:
      return run_tile<L, type, 1, kFetch>(t);
    case 2:
      return run_tile<L, type, 2, kFetch>(t);
    case 3:
      return run_tile<L, type, 3, kFetch>(t);
    case 4:
      return run_tile<L, type, 4, kFetch>(t);
    default:
      break;
  }
  if constexpr (L::max_rows(type) > 4) {
    if (num_rows == 5) return run_tile<L, type, 5, kFetch>(t);
    if (num_rows == 6) return run_tile<L, type, 6, kFetch>(t);
  }
  if constexpr (L::max_rows(type) > 6) {
    if (num_rows == 7) return run_tile<L, type, 7, kFetch>(t);
    if (num_rows == 8) return run_tile<L, type, 8, kFetch>(t);
  }
}

}  // namespace
}  // namespace pagoda
