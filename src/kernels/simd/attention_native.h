#pragma once
// The vdpbf16ps form of attention, which attention_kernels_avx512bf16() hands out only where it is the faster one;
// tests compare it with the reference wherever the CPU has it. C-clean.

#include "kernels/attention.h"

namespace pagoda {

const AttentionKernels& native_bf16_attention_kernels();

}  // namespace pagoda
