#pragma once
// Matrix multiplication, out[m][n] = sum_k act[m][k] * weight[n][k], for every weight type: signatures and rules.
// C-clean: plain structs and pointers only, because files compiled for one instruction set include it.
//
// Weights are packed at load into panels of 16 rows (lane r of a vector = row r of the panel); the same bytes serve
// every instruction set. Activations are brought into the format that the weight type asks for, once per matrix of
// activations, and shared by all matmuls that read them.
//
// The arithmetic of one output is fixed: it depends only on its weight row and its activation row, never on M, on the
// panel range, or on the instruction set. kernels/reference/matmul.cc is the definition.
//
// Segments: with num_segments = 4, K is cut at floor(i * units / 4) units, units = ceil(K / unit). A unit is 256 columns
// for types in super-blocks of 256; for all others 64 columns where K is a multiple of 64 (so that cuts fall on heads of
// 64), else 32. With fewer than 4 units some segments are empty and add +0.
//
// Numbers: FTZ and DAZ must be on in the calling thread. A group of activations with a NaN or an infinity gets the scale
// NaN, so every output of that row is NaN for quantised weights; for F32, F16 and BF16 weights both travel as IEEE says.
// NaN bits are not defined. A group whose scale absmax/127 would be denormal counts as zero.
//
// Thread rule: pure functions over disjoint outputs; callers split panels (or activation tiles) between threads.

#include <stddef.h>
#include <stdint.h>

#include "tensor/dtype_id.h"

namespace pagoda {

inline constexpr int kPanelRows = 16;

/// The form in which activations meet a weight type.
enum class ActFormat : uint8_t {
  kF32,         ///< F32 and F16 weights
  kBF16,        ///< BF16 weights: rounded to nearest even
  kQ8Group32,   ///< legacy quantised types: INT8 in groups of 32, scale absmax/127
  kQ8Group256,  ///< K-quants and IQ4_XS: INT8 in groups of 256
};

/// A weight matrix as packed panels. Not owning.
struct PackedMatrix {
  DType dtype = DType::kF32;
  int32_t n = 0;             ///< rows = outputs; the last panel is padded with zero rows
  int32_t k = 0;             ///< columns = inputs; a multiple of the type's block
  const uint8_t* data = nullptr;  ///< 64-byte aligned
  size_t panel_bytes = 0;    ///< a multiple of 64
};

inline int32_t num_panels(int32_t n) { return (n + kPanelRows - 1) / kPanelRows; }

enum class MatmulStore : uint8_t {
  kOverwrite,  ///< out = result (+ bias)
  kAdd,        ///< out = out + (result (+ bias)): the residual connection
};

struct MatmulArgs {
  PackedMatrix weights;
  const uint8_t* act = nullptr;  ///< written by prepare_act for weights' ActFormat, [num_rows, k]
  int32_t num_rows = 0;          ///< M >= 1
  int32_t panel_begin = 0;       ///< this call writes outputs of panels [panel_begin, panel_end)
  int32_t panel_end = 0;
  int32_t num_segments = 1;      ///< 1, or 4: summed (s0+s1)+(s2+s3)
  const float* bias = nullptr;   ///< [n] or null; added once, after the segments
  MatmulStore store = MatmulStore::kOverwrite;
  float* out = nullptr;          ///< out[m * out_stride + row]
  size_t out_stride = 0;
};

/// One instruction set's implementation.
struct MatmulKernels {
  /// Bytes that prepare_act writes for [num_rows, k]; 64-byte aligned destination.
  size_t (*act_bytes)(ActFormat format, int32_t num_rows, int32_t k);
  /// Independent pieces of prepare_act for [num_rows, k]: the unit that threads split.
  int32_t (*act_num_tiles)(int32_t num_rows);
  /// Converts the activation tiles [tile_begin, tile_end) of x[m * x_stride + i] into `act`.
  void (*prepare_act)(ActFormat format, const float* x, size_t x_stride, int32_t num_rows, int32_t k, int32_t tile_begin,
                      int32_t tile_end, uint8_t* act);
  void (*matmul)(const MatmulArgs& args);
};

}  // namespace pagoda
