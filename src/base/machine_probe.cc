#include "base/machine_probe.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/aligned_buffer.h"

namespace pagoda {

namespace {

constexpr size_t kProbeBytes = size_t{512} << 20;  // past every cache
constexpr int kRounds = 1000000;
constexpr int kChains = 12;                        // independent accumulators: more than latency times width of any core

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Reads [begin, begin + words) with eight streams, as a matmul over panels does.
uint64_t read_all(const uint64_t* begin, size_t words) {
  constexpr size_t kStreams = 8;
  const size_t length = words / kStreams / 8 * 8;
  uint64_t sums[kStreams][8] = {};
  for (size_t i = 0; i < length; i += 8) {
    for (size_t s = 0; s < kStreams; ++s) {
      for (size_t j = 0; j < 8; ++j) sums[s][j] |= begin[s * length + i + j];
    }
  }
  uint64_t all = 0;
  for (const auto& stream : sums) {
    for (const uint64_t v : stream) all |= v;
  }
  return all;
}

__attribute__((target("avx512f,avx512bw,avx512vnni"))) double vnni_gops() {
  __m512i acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = _mm512_set1_epi32(i);
  __m512i a = _mm512_set1_epi8(1), b = _mm512_set1_epi8(2);
  __asm__ volatile("" : "+v"(a), "+v"(b));
  const double start = now_s();
  for (int i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kChains; ++j) acc[j] = _mm512_dpbusd_epi32(acc[j], a, b);
  }
  const double seconds = now_s() - start;
  for (int i = 0; i < kChains; ++i) __asm__ volatile("" : : "v"(acc[i]));
  return kChains * 128.0 * kRounds / seconds / 1e9;
}

__attribute__((target("avx2"))) double avx2_gops() {
  __m256i acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = _mm256_set1_epi32(i);
  __m256i a = _mm256_set1_epi8(1), b = _mm256_set1_epi8(2), ones = _mm256_set1_epi16(1);
  __asm__ volatile("" : "+x"(a), "+x"(b), "+x"(ones));
  const double start = now_s();
  for (int i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < kChains; ++j) {
      __asm__ volatile("" : "+x"(a));  // the product must not be hoisted
      acc[j] = _mm256_add_epi32(acc[j], _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones));
    }
  }
  const double seconds = now_s() - start;
  for (int i = 0; i < kChains; ++i) __asm__ volatile("" : : "x"(acc[i]));
  return kChains * 64.0 * kRounds / seconds / 1e9;
}

}  // namespace

Result<double> probe_bandwidth_gbps(ThreadTeam& team, int repeats) {
  PAGODA_ASSIGN_OR_RETURN(AlignedBuffer buffer, AlignedBuffer::create(kProbeBytes));
  std::memset(buffer.data(), 1, buffer.size());
  double best = 0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const double start = now_s();
    team.run([&](int member) {
      const size_t words = buffer.size() / sizeof(uint64_t) / static_cast<size_t>(team.size());
      volatile uint64_t sink = read_all(buffer.as<uint64_t>() + words * static_cast<size_t>(member), words);
      (void)sink;
    });
    best = std::max(best, static_cast<double>(buffer.size()) / (now_s() - start) / 1e9);
  }
  return best;
}

double probe_int8_gops(ThreadTeam& team, Isa isa) {
  if (isa == Isa::kReference) return 0;
  std::vector<double> each(static_cast<size_t>(team.size()));
  team.run([&](int member) { each[static_cast<size_t>(member)] = isa >= Isa::kAvx512Vnni ? vnni_gops() : avx2_gops(); });
  double sum = 0;
  for (const double gops : each) sum += gops;
  return sum;
}

}  // namespace pagoda
