#pragma once
// Where things lie in packed weights, and where K is cut: arithmetic that packing, the reference and every kernel
// share. C-clean, all functions `static`: files compiled for one instruction set include it.
//
// A "line" is 64 bytes: one dword of each of the panel's 16 rows. A panel keeps the bytes of its rows' GGUF blocks,
// dword by dword across the rows, so a row reads back exactly (packing.cc lists the order of each type).
//
// Types in groups of 32 (legacy, IQ4_NL, MXFP4), L payload lines a group:
//   scale and minimum (Q4_1, Q5_1): [scale line][L lines] for each group;
//   a 2-byte scale (the others):    pairs of groups, [scales of both, 32 bytes each][L lines][L lines]; an odd last
//                                   group fills half a scale line and has its own L lines only.
// Types in super-blocks of 256: the super-block's lines, one after the other.
// F32: 64-byte lines of one k; F16: 32 bytes of one k; BF16: 64-byte lines of a pair of k, the even k in the low half.

#include <stddef.h>
#include <stdint.h>

#include "kernels/matmul.h"

namespace pagoda {

inline constexpr int kLineBytes = 64;
inline constexpr int kGroupK = 32;
inline constexpr int kSuperBlockK = 256;
/// Activations are laid out in tiles of this many rows, the last one narrower.
inline constexpr int kActTileRows = 16;
inline constexpr int kMaxSegments = 4;

// First payload line of `group`.
static inline size_t group_lines_offset(int scale_bytes, int lines, int group) {
  const size_t payload = static_cast<size_t>(lines) * kLineBytes;
  if (scale_bytes == 4) return group * (kLineBytes + payload) + kLineBytes;
  return (group / 2) * (kLineBytes + 2 * payload) + kLineBytes + (group & 1) * payload;
}

static inline size_t group_scales_offset(int scale_bytes, int lines, int group) {
  const size_t payload = static_cast<size_t>(lines) * kLineBytes;
  if (scale_bytes == 4) return group * (kLineBytes + payload);
  return (group / 2) * (kLineBytes + 2 * payload) + (group & 1) * (kLineBytes / 2);
}

static inline size_t groups_bytes(int scale_bytes, int lines, int num_groups) {
  const size_t scale_lines = scale_bytes == 4 ? num_groups : (num_groups + 1) / 2;
  return (scale_lines + static_cast<size_t>(num_groups) * lines) * kLineBytes;
}

static inline bool is_float_type(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

static inline bool is_super_block_type(DType dtype) {
  switch (dtype) {
    case DType::kQ2_K:
    case DType::kQ3_K:
    case DType::kQ4_K:
    case DType::kQ5_K:
    case DType::kQ6_K:
    case DType::kIQ4_XS:
      return true;
    default:
      return false;
  }
}

/// Columns in one unit of the segment rule (matmul.h).
static inline int segment_unit_k(DType dtype, int k) {
  if (is_super_block_type(dtype)) return kSuperBlockK;
  return k % 64 == 0 ? 64 : 32;
}

/// First column of segment `segment` of `num_segments`; segment == num_segments gives k.
static inline int segment_begin_k(DType dtype, int k, int num_segments, int segment) {
  if (segment == num_segments) return k;
  const int unit = segment_unit_k(dtype, k);
  const int64_t num_units = (k + unit - 1) / unit;
  return static_cast<int>(segment * num_units / num_segments) * unit;
}

}  // namespace pagoda
