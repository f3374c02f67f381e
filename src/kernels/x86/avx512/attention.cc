#include "kernels/kernel_table.h"
#include "kernels/simd/attention_levels.h"
#include "kernels/x86/avx512/vector_ops_vec16.h"

namespace pagoda {
namespace {

/// 32 registers: 6 rows x 4 accumulators + 4 loads + broadcasts. BF16 pairs unpack into twice the loads: 2 columns.
struct Avx512Level {
  using Vec = Avx512Vec;
  static constexpr bool kPairDot = false;
  static constexpr int columns(KvType type, int rows) { return type == KvType::kBF16 || rows > 6 ? 2 : 4; }
  static constexpr int max_rows(KvType) { return 8; }
  static constexpr int prefill_rows(KvType) { return 6; }
};

}  // namespace

const AttentionKernels& attention_kernels_avx512() {
  return AttentionLevel<Avx512Level>::kKernels;
}

}  // namespace pagoda
