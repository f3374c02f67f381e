#pragma once
// Tile tables that one level's files share, and that a higher level takes over where it has nothing better. C-clean.

#include "kernels/matmul.h"
#include "kernels/simd/matmul_act.h"

namespace pagoda {

/// Null for a type that is not of the family.
const TileTable* group32_tiles_avx2(DType dtype);
const TileTable* super_block_tiles_avx2(DType dtype);
const TileTable* group32_tiles_avx512(DType dtype);
const TileTable* super_block_tiles_avx512(DType dtype);
const TileTable* group32_tiles_avx512vnni(DType dtype);
const TileTable* super_block_tiles_avx512vnni(DType dtype);
/// The level avx512bf16 with the CPU's BF16 dot product, whether or not it is the faster way on this CPU.
const MatmulKernels& native_bf16_matmul_kernels();

}  // namespace pagoda
