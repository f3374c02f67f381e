#pragma once
// From MatmulArgs to tiles: order of panels and activation tiles, segments of K, bias and residual.

#include "kernels/simd/matmul_act.h"

namespace pagoda {
namespace {

/// The tile functions for one call. `pair` works on two panels at once and may be null.
struct MatmulPlan {
  const TileTable* single;
  const TileTable* pair;
  size_t act_column_bytes;
};

// Up to this many rows a panel is read once from memory and meets all activation tiles while it is in the L1 cache.
constexpr int kPanelOuterRows = 64;
// Above, an activation tile meets this many panels while both stay in L2: 8 panels of Q4_0, K = 2048, are 147 KiB.
constexpr int kPanelBlock = 8;
// The CPU's own prefetching stops at page ends and falls behind when several columns make a line last longer. 72 lines are
// more than a memory latency of 120 ns at 30 GB/s. On Intel family 6 model 207, one thread, Q4_0, K = 2048, this moves
// M = 1 from 36 to 49 GOP/s and M = 8 from 160 to 285.
constexpr size_t kPrefetchBytes = 72 * kLineBytes;
constexpr int kTileFloats = kActTileRows * kPanelRows;

static PAGODA_INLINE void run_tile_columns(const TileTable& table, TileArgs& t, float* out) {
  for (int column = 0; column < t.tile_columns;) {
    const TileEntry entry = table.entries[t.tile_columns - column];
    t.column = column;
    t.out = out + column * kPanelRows;
    entry.fn(t);
    column += entry.width;
  }
}

template <typename V>
static PAGODA_INLINE void add_floats(float* a, const float* b, int n) {
  for (int i = 0; i < n; i += V::kLanes) V::store_float(a + i, V::add(V::load_float(a + i), V::load_float(b + i)));
}

// Bias and residual of up to 16 rows of one output row.
template <typename V>
static PAGODA_INLINE void store_rows(const MatmulArgs& args, int row, const float* sums, float* out) {
  const int left = args.weights.n - row;
  const int num_rows = left < kPanelRows ? left : kPanelRows;
  if (num_rows == kPanelRows) {
    for (int i = 0; i < kPanelRows; i += V::kLanes) {
      typename V::Floats v = V::load_float(sums + i);
      if (args.bias != nullptr) v = V::add(v, V::load_float(args.bias + row + i));
      if (args.store == MatmulStore::kAdd) v = V::add(V::load_float(out + i), v);
      V::store_float(out + i, v);
    }
    return;
  }
  for (int i = 0; i < num_rows; ++i) {
    float v = sums[i];
    if (args.bias != nullptr) v = v + args.bias[row + i];
    out[i] = args.store == MatmulStore::kAdd ? out[i] + v : v;
  }
}

template <typename V>
static void run_tile(const MatmulArgs& args, const MatmulPlan& plan, int panel, int num_panels, int tile) {
  alignas(64) float sums[kMaxSegments][2 * kTileFloats];
  const PackedMatrix& weights = args.weights;
  const TileTable& table = num_panels == 2 ? *plan.pair : *plan.single;
  TileArgs t;
  t.panel = weights.data + panel * weights.panel_bytes;
  t.panel_bytes = weights.panel_bytes;
  t.act = args.act + static_cast<size_t>(tile) * kActTileRows * plan.act_column_bytes;
  t.tile_columns = act_tile_columns(args.num_rows, tile);
  t.prefetch_bytes = tile == 0 ? kPrefetchBytes : 0;
  for (int i = 0; i < args.num_segments; ++i) {
    t.k_begin = segment_begin_k(weights.dtype, weights.k, args.num_segments, i);
    t.k_end = segment_begin_k(weights.dtype, weights.k, args.num_segments, i + 1);
    run_tile_columns(table, t, sums[i]);
  }
  for (int p = 0; p < num_panels; ++p) {
    const int first = p * kTileFloats, count = t.tile_columns * kPanelRows;
    if (args.num_segments == kMaxSegments) {
      add_floats<V>(sums[0] + first, sums[1] + first, count);
      add_floats<V>(sums[2] + first, sums[3] + first, count);
      add_floats<V>(sums[0] + first, sums[2] + first, count);
    }
    const int row = (panel + p) * kPanelRows;
    for (int c = 0; c < t.tile_columns; ++c) {
      float* out = args.out + (static_cast<size_t>(tile) * kActTileRows + c) * args.out_stride + row;
      store_rows<V>(args, row, sums[0] + first + c * kPanelRows, out);
    }
  }
}

template <typename V>
static void run_matmul(const MatmulArgs& args, const MatmulPlan& plan) {
  const int num_tiles = (args.num_rows + kActTileRows - 1) / kActTileRows;
  const int block = args.num_rows <= kPanelOuterRows ? 2 : kPanelBlock;
  for (int begin = args.panel_begin; begin < args.panel_end; begin += block) {
    const int end = begin + block < args.panel_end ? begin + block : args.panel_end;
    for (int tile = 0; tile < num_tiles; ++tile) {
      for (int panel = begin; panel < end;) {
        const int num_panels = plan.pair != nullptr && panel + 1 < end ? 2 : 1;
        run_tile<V>(args, plan, panel, num_panels, tile);
        panel += num_panels;
      }
    }
  }
}

}  // namespace
}  // namespace pagoda
