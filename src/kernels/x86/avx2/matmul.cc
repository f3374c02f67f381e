#include "kernels/kernel_table.h"
#include "kernels/simd/matmul_driver.h"
#include "kernels/simd/matmul_float.h"
#include "kernels/simd/matmul_levels.h"
#include "kernels/simd/matmul_prepare.h"
#include "kernels/x86/avx2/matmul_simd.h"

namespace pagoda {

namespace {

using V = Avx2;
constexpr bool kNativeBf16 = false;

MatmulPlan make_plan(const PackedMatrix& weights) {
  static constexpr TileTable kF32 = float_table<V, F32Weights, 1, 4, 3, 2, 1>(),
                             kF32Pair = float_table<V, F32Weights, 2, 4, 3, 2, 1>();
  static constexpr TileTable kF16 = float_table<V, F16Weights, 1, 4, 3, 2, 1>(),
                             kF16Pair = float_table<V, F16Weights, 2, 4, 3, 2, 1>();
  static constexpr TileTable kBf16 = float_table<V, Bf16Weights, 1, 4, 3, 2, 1>();
  static constexpr TileTable kBf16Pair = float_table<V, Bf16Weights, 2, 4, 3, 2, 1>();
  switch (weights.dtype) {
    case DType::kF32:
      return {&kF32, &kF32Pair, act_column_bytes(ActFormat::kF32, weights.k, kNativeBf16)};
    case DType::kF16:
      return {&kF16, &kF16Pair, act_column_bytes(ActFormat::kF32, weights.k, kNativeBf16)};
    case DType::kBF16:
      return {&kBf16, &kBf16Pair, act_column_bytes(ActFormat::kBF16, weights.k, kNativeBf16)};
    default:
      break;
  }
  if (is_super_block_type(weights.dtype)) {
    const size_t column_bytes = act_column_bytes(ActFormat::kQ8Group256, weights.k, kNativeBf16);
    return {super_block_tiles_avx2(weights.dtype), nullptr, column_bytes};
  }
  return {group32_tiles_avx2(weights.dtype), nullptr, act_column_bytes(ActFormat::kQ8Group32, weights.k, kNativeBf16)};
}

void matmul(const MatmulArgs& args) {
  run_matmul<V>(args, make_plan(args.weights));
}

}  // namespace

const MatmulKernels& matmul_kernels_avx2() {
  static constexpr MatmulKernels kKernels = {act_bytes<V, kNativeBf16>, act_num_tiles, prepare_act<V, kNativeBf16>,
                                             matmul};
  return kKernels;
}

}  // namespace pagoda
