// BF16 caches by vdpbf16ps, which adds the odd product of each pair first, then the even one, each rounded: the bits of
// two fma. F16 and F32 caches run as on AVX-512.

#include <cpuid.h>

#include "kernels/kernel_table.h"
#include "kernels/simd/attention_levels.h"
#include "kernels/simd/attention_native.h"
#include "kernels/x86/avx512/vector_ops_vec16.h"

namespace pagoda {
namespace {

struct Bf16Pairs {
  __m512i bits;
};

/// 32 registers: 6 rows x 4 accumulators + 4 loads + broadcasts.
struct Avx512Bf16Level {
  using Vec = Avx512Vec;
  using Pairs = Bf16Pairs;
  static constexpr bool kPairDot = true;
  static constexpr int columns(KvType, int rows) { return rows > 6 ? 2 : 4; }
  static constexpr int max_rows(KvType) { return 8; }
  static constexpr int prefill_rows(KvType) { return 6; }

  static PAGODA_INLINE Pairs load_pairs(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
  static PAGODA_INLINE Pairs broadcast_pair(const uint32_t* p) { return {_mm512_set1_epi32(static_cast<int>(*p))}; }
  static PAGODA_INLINE void store_pairs(uint32_t* p, Pairs x) { _mm512_storeu_si512(p, x.bits); }
  static PAGODA_INLINE Pairs round_pairs(Vec low, Vec high) { return {(__m512i)_mm512_cvtne2ps_pbh(high.v, low.v)}; }
  static PAGODA_INLINE Vec dot_pairs(Vec acc, Pairs a, Pairs b) {
    return {_mm512_dpbf16_ps(acc.v, (__m512bh)a.bits, (__m512bh)b.bits)};
  }
};

}  // namespace

const AttentionKernels& native_bf16_attention_kernels() {
  return AttentionLevel<Avx512Bf16Level>::kKernels;
}

// Intel's vdpbf16ps takes two cycles: prefill of 512 rows at depth 8192 (9 heads, D = 64, 2 threads) reaches 153
// GFLOP/s where fma reaches 226; decode is alike. On Zen 4 vdpbf16ps is the faster one. The bits are equal.
const AttentionKernels& attention_kernels_avx512bf16() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool intel = __get_cpuid(0, &eax, &ebx, &ecx, &edx) && ebx == signature_INTEL_ebx;
  return intel ? attention_kernels_avx512() : native_bf16_attention_kernels();
}

}  // namespace pagoda
