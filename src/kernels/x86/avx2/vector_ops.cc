#include "kernels/x86/avx2/vector_ops_vec16.h"

#include "kernels/kernel_table.h"
#include "kernels/simd/vector_ops.h"

namespace pagoda {

const VectorKernels& vector_kernels_avx2() {
  return VectorOps<Avx2Vec>::kKernels;
}

}  // namespace pagoda
