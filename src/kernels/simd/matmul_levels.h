#pragma once
// Tile tables that one level's files share, and that a higher level takes over where it has nothing better. C-clean.

#include "kernels/simd/matmul_act.h"

namespace pagoda {

/// Null for a type that is not of the family.
const TileTable* group32_tiles_avx2(DType dtype);
const TileTable* super_block_tiles_avx2(DType dtype);
const TileTable* group32_tiles_avx512(DType dtype);
const TileTable* super_block_tiles_avx512(DType dtype);
const TileTable* group32_tiles_avx512vnni(DType dtype);
const TileTable* super_block_tiles_avx512vnni(DType dtype);

}  // namespace pagoda
