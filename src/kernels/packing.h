#pragma once
// Packing of weight rows into panels, and reading rows back. Plain scalar code, done once at load.

#include <stddef.h>
#include <stdint.h>

#include "kernels/matmul.h"

namespace pagoda {

ActFormat act_format(DType weight_type);
/// Bytes of one panel of 16 rows with `k` columns; a multiple of 64.
size_t packed_panel_bytes(DType dtype, int32_t k);
/// Smallest unit of K for which packing exists (block, or pair of blocks): k must be a multiple, checked at load.
int32_t packed_k_multiple(DType dtype);
/// `rows` holds `num_rows` (1..16) rows as GGUF stores them, `row_bytes` apart; missing rows become zero weights.
/// Writes packed_panel_bytes.
void pack_panel(DType dtype, const uint8_t* rows, size_t row_bytes, int32_t num_rows, int32_t k, uint8_t* panel);
/// GGUF bytes of block `block` of row `row`: `dst` receives the type's block bytes (2 or 4 bytes for float types).
void unpack_block(const PackedMatrix& matrix, int32_t row, int32_t block, uint8_t* dst);
/// Row `row` of the matrix, dequantised exactly as the type's reference decoder does: dst[k].
void unpack_row(const PackedMatrix& matrix, int32_t row, float* dst);

}  // namespace pagoda
