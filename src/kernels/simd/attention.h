#pragma once
// The walk over splits, tiles and rows around attention_tile.h, the cache writer and the naive form. Included only by
// files of one instruction set; internal linkage throughout.

#include "kernels/simd/attention_tile.h"

namespace pagoda {
namespace {

namespace rule = attention_rule;

// Rows that share a tile of K and V while it is in L1: 48 rows of state (D = 64: 24 KiB) stay in L2.
constexpr int32_t kRowBlock = 48;

/// Buffers of an item's rows, cut out of the caller's scratch.
struct RowState {
  int32_t num_rows;
  uint32_t* query;  // [num_rows][key_dim]
  float* maximum;   // [num_rows]
  float* sums;      // [num_rows][16]
  float* values;    // [num_rows][value_dim]
  float* total_maximum;
  float* total_sum;
  float* total_values;
};

inline size_t state_floats(const AttentionArgs& args, int32_t max_rows) {
  const size_t n = rule::padded16(static_cast<size_t>(max_rows) * rule::group_size(args));
  return n * (static_cast<size_t>(args.layout.key_dim) + 2 * args.layout.value_dim + kLanes + 3);
}

inline size_t attend_scratch_bytes(const AttentionArgs& args, int32_t max_rows) {
  return state_floats(args, max_rows) * sizeof(float);
}

inline RowState make_state(const AttentionArgs& args, const AttentionItem& item, uint8_t* scratch) {
  const int32_t num_rows = (item.row_end - item.row_begin) * rule::group_size(args);
  const size_t n = rule::padded16(num_rows);
  auto* next = reinterpret_cast<float*>(scratch);
  RowState s;
  s.num_rows = num_rows;
  s.query = reinterpret_cast<uint32_t*>(next);
  s.values = next + n * args.layout.key_dim;
  s.total_values = s.values + n * args.layout.value_dim;
  s.sums = s.total_values + n * args.layout.value_dim;
  s.maximum = s.sums + n * kLanes;
  s.total_maximum = s.maximum + n;
  s.total_sum = s.total_maximum + n;
  return s;
}

template <class L, KvType type>
void pack_query(const float* q, float factor, int32_t n, uint32_t* out) {
  using V = typename L::Vec;
  const V f = V::set(factor);
  for (int32_t d = 0; d < n; d += kLanes) {
    const V x = V::load(q + d) * f;
    if constexpr (!kIsBf16<type>) {
      x.store(reinterpret_cast<float*>(out) + d);
    } else if constexpr (L::kPairDot) {
      x.round_bf16().store_high16(reinterpret_cast<uint16_t*>(out) + d);
    } else {
      x.round_bf16().store(reinterpret_cast<float*>(out) + d);
    }
  }
}

template <class L, KvType type>
struct Attention {
  using V = typename L::Vec;

  static void pack_queries(const AttentionArgs& args, const AttentionItem& item, const RowState& s) {
    const float factor = rule::query_scale(args);
    const int32_t key_dim = args.layout.key_dim;
    for (int32_t i = 0; i < s.num_rows; ++i) {
      pack_query<L, type>(rule::query_row(args, item, i), factor, key_dim, s.query + static_cast<size_t>(i) * key_dim);
    }
  }

  /// Rows of one register tile. A decode group goes in as few equal passes as possible; prefill in the widest tile.
  static int32_t rows_per_pass(int32_t num_rows) {
    constexpr int32_t kMost = L::max_rows(type);
    if (num_rows > 2 * kMost) return L::prefill_rows(type);
    const int32_t passes = (num_rows + kMost - 1) / kMost;
    return (num_rows + passes - 1) / passes;
  }

  /// Slabs of the tile at `tile` that positions [seen_begin, seen_end) touch; the others stay null.
  static void find_panels(const AttentionArgs& args, int32_t kv_head, int32_t tile, int32_t seen_begin,
                          int32_t seen_end, const uint8_t* (&panels)[kTilePanels]) {
    for (int32_t p = 0; p < kTilePanels; ++p) {
      const int32_t begin = tile + p * kKvPanelTokens;
      const bool seen = begin < seen_end && begin + kKvPanelTokens > seen_begin;
      panels[p] = seen ? rule::slab(args, kv_head, begin / kKvPanelTokens) : nullptr;
    }
  }

  /// Rows [begin, end) of the item against one tile whose panels are in t. True when it has prefetched.
  static bool run_rows(const AttentionArgs& args, const AttentionItem& item, const RowState& s, int32_t tile,
                       int32_t begin, int32_t end, bool fetch, TileArgs& t) {
    const int32_t first = rule::row_position(args, item, begin);
    const int32_t last = rule::row_position(args, item, end - 1);
    const int32_t first_seen = rule::window_begin(args.window, first);
    if (last < tile || first_seen >= tile + kAttentionTile) return false;
    t.masked = first < tile + kAttentionTile - 1 || rule::window_begin(args.window, last) > tile;
    t.panel_begin = 0;
    t.panel_end = kTilePanels;
    if (t.masked) {
      t.panel_begin = first_seen > tile ? (first_seen - tile) / kKvPanelTokens : 0;
      const int32_t seen_panels = (last - tile) / kKvPanelTokens + 1;
      t.panel_end = seen_panels < kTilePanels ? seen_panels : kTilePanels;
      for (int32_t r = begin; r < end; ++r) {
        const int32_t position = rule::row_position(args, item, r);
        t.seen_begin[r - begin] = rule::window_begin(args.window, position) - tile;
        t.seen_end[r - begin] = position + 1 - tile;
      }
    }
    const auto row = static_cast<size_t>(begin);
    t.query = s.query + row * args.layout.key_dim;
    t.maximum = s.maximum + row;
    t.sums = s.sums + row * kLanes;
    t.values = s.values + row * args.layout.value_dim;
    const bool fetches = fetch && !t.masked;
    if (fetches) {
      run_tile_rows<L, type, true>(end - begin, t);
    } else {
      run_tile_rows<L, type, false>(end - begin, t);
    }
    return fetches;
  }

  /// All rows of the item against the positions [split_begin, split_begin + 256).
  static void run_split(const AttentionArgs& args, const AttentionItem& item, const RowState& s, int32_t split_begin) {
    for (int32_t i = 0; i < s.num_rows; ++i) s.maximum[i] = rule::kLowest;
    memset(s.sums, 0, sizeof(float) * s.num_rows * kLanes);
    memset(s.values, 0, sizeof(float) * s.num_rows * args.layout.value_dim);
    const int32_t context = rule::row_position(args, item, s.num_rows - 1) + 1;
    const int32_t step = rows_per_pass(s.num_rows);
    const int32_t block = kRowBlock / step * step;
    for (int32_t begin = 0; begin < s.num_rows; begin += block) {
      const int32_t end = begin + block < s.num_rows ? begin + block : s.num_rows;
      run_row_block(args, item, s, split_begin, begin, end, step, context);
    }
  }

  static void run_row_block(const AttentionArgs& args, const AttentionItem& item, const RowState& s,
                            int32_t split_begin, int32_t row_begin, int32_t row_end, int32_t step, int32_t context) {
    TileArgs t;
    t.cap = args.soft_cap * rule::kLog2e;
    t.key_dim = args.layout.key_dim;
    t.value_dim = args.layout.value_dim;
    t.key_bytes = rule::key_bytes(args.layout);
    const int32_t seen_begin = rule::window_begin(args.window, rule::row_position(args, item, row_begin));
    const int32_t seen_end = rule::row_position(args, item, row_end - 1) + 1;
    const int32_t split_end = split_begin + kAttentionSplit < seen_end ? split_begin + kAttentionSplit : seen_end;
    const int32_t first_tile = seen_begin / kAttentionTile * kAttentionTile;
    for (int32_t tile = first_tile > split_begin ? first_tile : split_begin; tile < split_end; tile += kAttentionTile) {
      find_panels(args, item.kv_head, tile, seen_begin, seen_end, t.panels);
      const int32_t next_tile = tile + kAttentionTile;
      bool fetch = row_begin == 0 && next_tile < context;
      if (fetch) {
        find_panels(args, item.kv_head, next_tile, next_tile, context, t.next);
        for (auto& panel : t.next) {
          if (panel == nullptr) panel = t.next[0];
        }
      }
      for (int32_t r = row_begin; r < row_end; r += step) {
        const int32_t end = r + step < row_end ? r + step : row_end;
        if (run_rows(args, item, s, tile, r, end, fetch, t)) fetch = false;
      }
    }
  }

  /// (M, L, A) of one row, folded with a split's (m, l, O).
  static PAGODA_INLINE void fold_row(float& total_maximum, float& total_sum, float* total_values, float maximum,
                                     float sum, const float* values, int32_t n) {
    const float m = maximum > total_maximum ? maximum : total_maximum;
    const float a = f32::exp2_nonpositive(total_maximum - m);
    const float b = f32::exp2_nonpositive(maximum - m);
    total_maximum = m;
    total_sum = f32::fma(sum, b, total_sum * a);
    const V va = V::set(a);
    const V vb = V::set(b);
    for (int32_t d = 0; d < n; d += kLanes) {
      V::fma(V::load(values + d), vb, V::load(total_values + d) * va).store(total_values + d);
    }
  }

  static PAGODA_INLINE void finish_row(float sum, const float* values, int32_t n, float* out) {
    const V inverse = V::set(sum == 0.0f ? 0.0f : 1.0f / sum);
    for (int32_t d = 0; d < n; d += kLanes) (V::load(values + d) * inverse + V::zero()).store(out + d);
  }

  static void attend(const AttentionArgs& args, const AttentionItem& item, uint8_t* scratch) {
    const RowState s = make_state(args, item, scratch);
    const auto value_dim = static_cast<size_t>(args.layout.value_dim);
    pack_queries(args, item, s);
    for (int32_t i = 0; i < s.num_rows; ++i) {
      s.total_maximum[i] = rule::kLowest;
      s.total_sum[i] = 0.0f;
    }
    memset(s.total_values, 0, sizeof(float) * s.num_rows * value_dim);
    const int32_t context = rule::row_position(args, item, s.num_rows - 1) + 1;
    const int32_t first_seen = rule::window_begin(args.window, rule::row_position(args, item, 0));
    for (int32_t split = first_seen / kAttentionSplit * kAttentionSplit; split < context; split += kAttentionSplit) {
      run_split(args, item, s, split);
      for (int32_t i = 0; i < s.num_rows; ++i) {
        fold_row(s.total_maximum[i], s.total_sum[i], s.total_values + i * value_dim, s.maximum[i],
                 V::load(s.sums + static_cast<size_t>(i) * kLanes).tree_sum(), s.values + i * value_dim,
                 args.layout.value_dim);
      }
    }
    for (int32_t i = 0; i < s.num_rows; ++i) {
      finish_row(s.total_sum[i], s.total_values + i * value_dim, args.layout.value_dim,
                 rule::output_row(args, item, i));
    }
  }

  static void attend_split(const AttentionArgs& args, const AttentionItem& item, int32_t split_idx, uint8_t* scratch,
                           float* partial) {
    RowState s = make_state(args, item, scratch);
    const size_t padded = rule::padded16(s.num_rows);
    s.maximum = partial;
    s.values = partial + 2 * padded;
    pack_queries(args, item, s);
    run_split(args, item, s, split_idx * kAttentionSplit);
    for (int32_t i = 0; i < s.num_rows; ++i) {
      partial[padded + i] = V::load(s.sums + static_cast<size_t>(i) * kLanes).tree_sum();
    }
  }

  static void fold_splits(const AttentionArgs& args, const AttentionItem& item, const float* partials,
                          int32_t num_splits) {
    const int32_t value_dim = args.layout.value_dim;
    const int32_t n = (item.row_end - item.row_begin) * rule::group_size(args);
    const size_t padded = rule::padded16(n);
    const size_t stride = rule::partial_floats(args, item.row_end - item.row_begin);
    for (int32_t i = 0; i < n; ++i) {
      float* out = rule::output_row(args, item, i);
      float maximum = rule::kLowest;
      float sum = 0.0f;
      memset(out, 0, sizeof(float) * value_dim);
      for (int32_t k = 0; k < num_splits; ++k) {
        const float* p = partials + k * stride;
        fold_row(maximum, sum, out, p[i], p[padded + i], p + 2 * padded + static_cast<size_t>(i) * value_dim,
                 value_dim);
      }
      finish_row(sum, out, value_dim, out);
    }
  }
};

}  // namespace
}  // namespace pagoda
