#include "kernels/x86/avx512/vector_ops_vec16.h"

#include "kernels/kernel_table.h"
#include "kernels/simd/vector_ops.h"

namespace pagoda {

const VectorKernels& vector_kernels_avx512() {
  return VectorOps<Avx512Vec>::kKernels;
}

}  // namespace pagoda
