#pragma once
// Activations as the vector kernels read them: tiles of up to 16 rows ("columns" here: they are the columns of a tile
// of outputs), interleaved along K so that one broadcast feeds a dot product. C-clean; all in an unnamed namespace.
//
// kF32:        [k][C] F32.
// kBF16:       native dot product: [k/2][C] dwords, even k in the low half; otherwise [k/2][C] x {odd, even} F32.
// kQ8Group32:  per group [C][32] int8, then dword rows [C] of Group32Field.
// kQ8Group256: per group [8][C][32] int8, then dword rows [C] of Group256Field.
//
// Weights are unsigned with an offset, so dots start from -offset * sum(activations), ready made for the offsets in
// use.

#include "kernels/matmul_layout.h"

#define PAGODA_INLINE inline __attribute__((always_inline))
// Column loops hold their accumulators in registers only when fully unrolled.
#if defined(__clang__)
#define PAGODA_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PAGODA_UNROLL _Pragma("GCC unroll 16")
#endif

// Keeps the compiler from moving loads across, which would make it spill sums to the stack.
// The CPU overlaps the work by itself.
#define PAGODA_KEEP_ORDER() __asm__ volatile("" ::: "memory")

namespace pagoda {

/// What a tile function gets. It computes some columns from `column` of an activation tile of `tile_columns`, over
/// columns of weights [k_begin, k_end): out[c * 16 + row], for a second panel at out + 256.
struct TileArgs {
  const uint8_t* panel;
  size_t panel_bytes;  // to the next panel, for tiles of two
  const uint8_t* act;
  int tile_columns;
  int column;
  int k_begin;
  int k_end;
  size_t prefetch_bytes;  // how far ahead of the weights to prefetch; 0 where they are in the cache
  float* out;
};
typedef void (*TileFn)(const TileArgs& args);

struct TileEntry {
  int width;
  TileFn fn;
};

/// Tile functions of one weight type: entries[c] is the widest for c columns left.
struct TileTable {
  TileEntry entries[kActTileRows + 1];
};

namespace {

// `num_lines` lines at `p` towards the L2 cache. Past the end of the weights this does nothing.
static PAGODA_INLINE void prefetch_lines(const uint8_t* p, int num_lines) {
  for (int i = 0; i < num_lines; ++i) __builtin_prefetch(p + i * kLineBytes, 0, 2);
}

// `entries` in falling order of width, down to 1.
constexpr TileTable make_tile_table(const TileEntry* entries, int num_entries) {
  TileTable table = {};
  for (int columns = 1; columns <= kActTileRows; ++columns) {
    for (int i = num_entries - 1; i >= 0; --i) {
      if (entries[i].width <= columns) table.entries[columns] = entries[i];
    }
  }
  return table;
}

enum Group32Field : int {
  kScale32,         // F32
  kScaledSum32,     // F32: float(sum) * scale, for types with a minimum
  kStartOffset8,    // int32 -8 * sum
  kStartOffset16,   // int32 -16 * sum
  kStartOffset128,  // int32 -128 * sum
  kNumFields32,
};

// Sums of neighbouring quarters come as int16 pairs (0, 2), (1, 3) of four, because that is how four bytes of
// sub-scales in a dword split with one mask and one shift.
enum Group256Field : int {
  kScale256 = 0,            // F32
  kPairsOf32 = 1,           // 4 x int16 pair: sums of 32
  kPairsOf16 = 5,           // 8 x int16 pair: sums of 16
  kStartOf16Offset32 = 13,  // 16 x int32: -32 * sum of 16
  kNumFields256 = 29,
};

constexpr int kGroup32ColumnBytes = kGroupK + 4 * kNumFields32;
constexpr int kGroup256ColumnBytes = kSuperBlockK + 4 * kNumFields256;

// Bytes that one column takes for `k` columns of weights.
static PAGODA_INLINE size_t act_column_bytes(ActFormat format, int k, bool native_bf16) {
  switch (format) {
    case ActFormat::kF32:
      return static_cast<size_t>(k) * 4;
    case ActFormat::kBF16:
      return static_cast<size_t>(k) * (native_bf16 ? 2 : 4);
    case ActFormat::kQ8Group32:
      return static_cast<size_t>(k / kGroupK) * kGroup32ColumnBytes;
    default:
      return static_cast<size_t>(k / kSuperBlockK) * kGroup256ColumnBytes;
  }
}

static PAGODA_INLINE int act_tile_columns(int num_rows, int tile) {
  const int left = num_rows - tile * kActTileRows;
  return left < kActTileRows ? left : kActTileRows;
}

}  // namespace
}  // namespace pagoda
