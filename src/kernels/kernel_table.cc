#include "kernels/kernel_table.h"

namespace pagoda {

const KernelTable& kernel_table(Isa isa) {
  // Attention and row operators gain nothing from VNNI; only attention over BF16 has a BF16 version.
  static const KernelTable tables[kNumIsas] = {
      {Isa::kReference, &matmul_kernels_reference(), &attention_kernels_reference(), &vector_kernels_reference()},
      {Isa::kAvx2, &matmul_kernels_avx2(), &attention_kernels_avx2(), &vector_kernels_avx2()},
      {Isa::kAvx512, &matmul_kernels_avx512(), &attention_kernels_avx512(), &vector_kernels_avx512()},
      {Isa::kAvx512Vnni, &matmul_kernels_avx512vnni(), &attention_kernels_avx512(), &vector_kernels_avx512()},
      {Isa::kAvx512Bf16, &matmul_kernels_avx512bf16(), &attention_kernels_avx512bf16(), &vector_kernels_avx512()},
  };
  return tables[static_cast<int>(isa)];
}

}  // namespace pagoda
