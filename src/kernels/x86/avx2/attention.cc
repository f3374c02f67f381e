#include "kernels/kernel_table.h"
#include "kernels/simd/attention_levels.h"
#include "kernels/x86/avx2/vector_ops_vec16.h"

namespace pagoda {
namespace {

/// 16 registers: 6 rows x 2 accumulators + 2 loads + 1 broadcast; BF16 pairs need 4 loads and 2 broadcasts: 4 rows.
struct Avx2Level {
  using Vec = Avx2Vec;
  static constexpr bool kPairDot = false;
  static constexpr int columns(KvType, int) { return 1; }
  static constexpr int max_rows(KvType type) { return type == KvType::kBF16 ? 4 : 6; }
  static constexpr int prefill_rows(KvType type) { return max_rows(type); }
};

}  // namespace

const AttentionKernels& attention_kernels_avx2() {
  return AttentionLevel<Avx2Level>::kKernels;
}

}  // namespace pagoda
