#include "kernels/simd/matmul_super_block.h"

#include "kernels/simd/matmul_levels.h"
#include "kernels/x86/avx2/matmul_simd.h"

namespace pagoda {

const TileTable* super_block_tiles_avx2(DType dtype) {
  using V = Avx2;
  static constexpr TileTable kQ2K = super_block_table<V, Q2KBlock, 4, 1>();
  static constexpr TileTable kQ3K = super_block_table<V, Q3KBlock, 4, 1>();
  static constexpr TileTable kQ4K = super_block_table<V, Q4KBlock, 4, 1>();
  static constexpr TileTable kQ5K = super_block_table<V, Q5KBlock, 4, 1>();
  static constexpr TileTable kQ6K = super_block_table<V, Q6KBlock, 4, 1>();
  static constexpr TileTable kIq4Xs = super_block_table<V, Iq4XsBlock, 4, 1>();
  switch (dtype) {
    case DType::kQ2_K:
      return &kQ2K;
    case DType::kQ3_K:
      return &kQ3K;
    case DType::kQ4_K:
      return &kQ4K;
    case DType::kQ5_K:
      return &kQ5K;
    case DType::kQ6_K:
      return &kQ6K;
    case DType::kIQ4_XS:
      return &kIq4Xs;
    default:
      return nullptr;
  }
}

}  // namespace pagoda
