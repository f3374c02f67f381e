#include "kernels/simd/matmul_group32.h"

#include "kernels/simd/matmul_levels.h"
#include "kernels/x86/avx512/matmul_simd.h"

namespace pagoda {

const TileTable* group32_tiles_avx512vnni(DType dtype) {
  using V = Avx512<true>;
  static constexpr TileTable kQ4_0 = group32_table<V, Q4_0Group, 16, 12, 8, 6, 4, 3, 2, 1>();
  static constexpr TileTable kQ4_1 = group32_table<V, Q4_1Group, 16, 12, 8, 6, 4, 3, 2, 1>();
  static constexpr TileTable kQ5_0 = group32_table<V, Q5_0Group, 16, 12, 8, 6, 4, 3, 2, 1>();
  static constexpr TileTable kQ5_1 = group32_table<V, Q5_1Group, 16, 12, 8, 6, 4, 3, 2, 1>();
  static constexpr TileTable kQ8_0 = group32_table<V, Q8_0Group, 16, 12, 8, 6, 4, 3, 2, 1>();
  static constexpr TileTable kIq4Nl = group32_table<V, Iq4NlGroup, 16, 12, 8, 6, 4, 3, 2, 1>();
  static constexpr TileTable kMxfp4 = group32_table<V, Mxfp4Group, 16, 12, 8, 6, 4, 3, 2, 1>();
  switch (dtype) {
    case DType::kQ4_0:
      return &kQ4_0;
    case DType::kQ4_1:
      return &kQ4_1;
    case DType::kQ5_0:
      return &kQ5_0;
    case DType::kQ5_1:
      return &kQ5_1;
    case DType::kQ8_0:
      return &kQ8_0;
    case DType::kIQ4_NL:
      return &kIq4Nl;
    case DType::kMXFP4:
      return &kMxfp4;
    default:
      return nullptr;
  }
}

}  // namespace pagoda
