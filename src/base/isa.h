#pragma once
// Instruction-set levels, each including those before it. All give the same bits. C-clean: kernel files include it.

#include <stdint.h>

namespace pagoda {
enum class Isa : uint8_t { kReference, kAvx2, kAvx512, kAvx512Vnni, kAvx512Bf16 };
inline constexpr int kNumIsas = 5;
}  // namespace pagoda
