#pragma once
// The tensor types Pagoda can hold (dtype.h has their table). C-clean: kernel files include it.

#include <stdint.h>

namespace pagoda {
enum class DType : uint8_t {
  kF32, kF16, kBF16, kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0,
  kQ2_K, kQ3_K, kQ4_K, kQ5_K, kQ6_K, kIQ4_NL, kIQ4_XS, kMXFP4,
};
inline constexpr int kNumDTypes = 16;
}  // namespace pagoda
