#pragma once
// The kernels of one instruction set, chosen once at start. Adding an instruction set: one folder and one row here.

#include "base/isa.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/vector_ops.h"

namespace pagoda {

struct KernelTable {
  Isa isa;
  const MatmulKernels* matmul;
  const AttentionKernels* attention;
  const VectorKernels* vector;
};

/// The table of a level. Rows exist for every level; using one the CPU lacks is the caller's error (choose_isa checks).
const KernelTable& kernel_table(Isa isa);

// One function per family and level; each lives in that level's folder.
const MatmulKernels& matmul_kernels_reference();
const MatmulKernels& matmul_kernels_avx2();
const MatmulKernels& matmul_kernels_avx512();
const MatmulKernels& matmul_kernels_avx512vnni();
const MatmulKernels& matmul_kernels_avx512bf16();
const AttentionKernels& attention_kernels_reference();
const AttentionKernels& attention_kernels_avx2();
const AttentionKernels& attention_kernels_avx512();
const AttentionKernels& attention_kernels_avx512bf16();
const VectorKernels& vector_kernels_reference();
const VectorKernels& vector_kernels_avx2();
const VectorKernels& vector_kernels_avx512();

}  // namespace pagoda
