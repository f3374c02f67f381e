// Speed of matrix multiplication beside what the machine can do.
//   matmul_bench [--isa=NAME] [--types=Q4_1,Q8_0] [--rows=1,8,64,512] [--threads=1,2] [--shape=N,K]
// Per line: GOP/s (2*M*N*K per call, activations prepared beforehand), share of the VNNI peak, GB/s of weights, and for
// one row the share of a DRAM probe run just before and after. Weights rotate over 512 MiB so that none is cached.

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/cpu.h"
#include "base/thread_team.h"
#include "kernels/kernel_table.h"
#include "kernels/packing.h"
#include "tensor/dtype.h"
#include "tensor/half.h"

namespace pagoda {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Options {
  std::string isa;
  std::vector<std::string> types = {"Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q4_K", "Q6_K"};
  std::vector<std::string> rows = {"1", "8", "64", "512"};
  std::vector<std::string> threads = {"1", "2"};
  std::vector<std::string> shape = {"16384", "2048"};
};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    const size_t equals = arg.find('=');
    const std::string_view name = arg.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? "" : arg.substr(equals + 1);
    if (name == "--isa")
      options.isa = value;
    else if (name == "--types")
      options.types = split(value);
    else if (name == "--rows")
      options.rows = split(value);
    else if (name == "--threads")
      options.threads = split(value);
    else if (name == "--shape" && split(value).size() == 2)
      options.shape = split(value);
    else
      return false;
  }
  return true;
}

// GOP/s of one thread that does nothing but vpdpbusd; 0 on a CPU without it.
__attribute__((target("avx512f,avx512bw,avx512vnni"))) double vnni_peak_of_this_thread() {
  __m512i acc[12];
  for (int i = 0; i < 12; ++i) acc[i] = _mm512_set1_epi32(i);
  __m512i a = _mm512_set1_epi8(1), b = _mm512_set1_epi8(2);
  __asm__ volatile("" : "+v"(a), "+v"(b));
  double best = 0;
  constexpr int kRounds = 2000000;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const double start = now_s();
    for (int i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
      for (int j = 0; j < 12; ++j) acc[j] = _mm512_dpbusd_epi32(acc[j], a, b);
    }
    best = std::max(best, 12.0 * kRounds * 128 / (now_s() - start) / 1e9);
  }
  for (int i = 1; i < 12; ++i) acc[0] = _mm512_add_epi32(acc[0], acc[i]);
  volatile int sink = _mm512_reduce_add_epi32(acc[0]);
  (void)sink;
  return best;
}

double vnni_peak(ThreadTeam& team) {
  if (detect_isa() < Isa::kAvx512Vnni) return 0;
  std::vector<double> each(team.size());
  team.run([&](int member) { each[member] = vnni_peak_of_this_thread(); });
  double sum = 0;
  for (const double peak : each) sum += peak;
  return sum;
}

// GB/s of reading `bytes` once with all threads, eight streams each.
double dram_probe(ThreadTeam& team, const AlignedBuffer& buffer) {
  double best = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const double start = now_s();
    team.run([&](int member) {
      constexpr int kStreams = 8;
      const size_t words = buffer.size() / 8 / team.size() / kStreams / 16 * 16;
      const auto* base = buffer.as<uint64_t>() + member * words * kStreams;
      uint64_t sums[kStreams][8] = {};
      for (size_t i = 0; i < words; i += 8) {
        for (int s = 0; s < kStreams; ++s) {
          for (int j = 0; j < 8; ++j) sums[s][j] |= base[s * words + i + j];
        }
      }
      volatile uint64_t sink = 0;
      for (auto& stream : sums) {
        for (const uint64_t v : stream) sink = sink | v;
      }
    });
    best = std::max(best, static_cast<double>(buffer.size()) / (now_s() - start) / 1e9);
  }
  return best;
}

struct Weights {
  PackedMatrix matrix;  // data is set per copy
  AlignedBuffer copies;
  size_t copy_bytes = 0;
  int num_copies = 0;
};

// One random panel, repeated: speed does not depend on the values.
Weights make_weights(DType dtype, int n, int k) {
  const DTypeTraits& type = traits(dtype);
  std::vector<uint8_t> rows(dtype_bytes(dtype, static_cast<size_t>(kPanelRows) * k));
  uint32_t state = 1;
  for (uint8_t& byte : rows) byte = static_cast<uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
  if (type.block_elements == 1) {
    std::fill(rows.begin(), rows.end(), uint8_t{0x11});  // small finite numbers in all three float types
  }
  Weights weights;
  const size_t panel_bytes = packed_panel_bytes(dtype, k);
  weights.copy_bytes = panel_bytes * num_panels(n);
  weights.num_copies = static_cast<int>(std::max<size_t>(1, (size_t{512} << 20) / weights.copy_bytes));
  weights.copies = AlignedBuffer::create(weights.copy_bytes * weights.num_copies).value();
  pack_panel(dtype, rows.data(), rows.size() / kPanelRows, kPanelRows, k, weights.copies.data());
  for (size_t at = panel_bytes; at < weights.copies.size(); at += panel_bytes) {
    memcpy(weights.copies.data() + at, weights.copies.data(), panel_bytes);
  }
  weights.matrix = {dtype, n, k, nullptr, panel_bytes};
  return weights;
}

struct Measured {
  double gops = 0;
  double gbs = 0;
};

Measured measure(const MatmulKernels& kernels, ThreadTeam& team, const Weights& weights, int num_rows) {
  const int n = weights.matrix.n, k = weights.matrix.k;
  const ActFormat format = act_format(weights.matrix.dtype);
  std::vector<float> x(static_cast<size_t>(num_rows) * k);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) * 0.02f;
  AlignedBuffer act = AlignedBuffer::create(kernels.act_bytes(format, num_rows, k)).value();
  kernels.prepare_act(format, x.data(), k, num_rows, k, 0, kernels.act_num_tiles(num_rows), act.data());
  AlignedBuffer out = AlignedBuffer::create(static_cast<size_t>(num_rows) * n * 4).value();
  MatmulArgs args;
  args.weights = weights.matrix;
  args.act = act.data();
  args.num_rows = num_rows;
  args.out = out.as<float>();
  args.out_stride = n;
  const double gop_a_call = 2.0 * n * k * num_rows / 1e9;
  const int calls = std::max(2, std::min(weights.num_copies, static_cast<int>(60 / gop_a_call)));
  const int64_t grain = num_rows <= 64 ? 4 : 8;
  double best = 1e30;
  for (int repeat = 0; repeat < 4; ++repeat) {
    const double start = now_s();
    for (int i = 0; i < calls; ++i) {
      args.weights.data = weights.copies.data() + i % weights.num_copies * weights.copy_bytes;
      team.parallel_for(num_panels(n), grain, [&](int64_t begin, int64_t end, int) {
        MatmulArgs part = args;
        part.panel_begin = static_cast<int32_t>(begin);
        part.panel_end = static_cast<int32_t>(end);
        kernels.matmul(part);
      });
    }
    best = std::min(best, (now_s() - start) / calls);
  }
  return {gop_a_call / best, static_cast<double>(weights.copy_bytes) / best / 1e9};
}

int run(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    fprintf(stderr, "usage: matmul_bench [--isa=NAME] [--types=A,B] [--rows=1,8] [--threads=1,2] [--shape=N,K]\n");
    return 2;
  }
  const auto isa = choose_isa(options.isa);
  if (!isa.ok()) {
    fprintf(stderr, "matmul_bench: PAGODA_ISA or --isa: not supported here\n");
    return 2;
  }
  const MatmulKernels& kernels = *kernel_table(*isa).matmul;
  const int n = atoi(options.shape[0].c_str()), k = atoi(options.shape[1].c_str());
  AlignedBuffer probe = AlignedBuffer::create(size_t{512} << 20).value();
  memset(probe.data(), 1, probe.size());
  for (const std::string& threads : options.threads) {
    const auto team = ThreadTeam::create(atoi(threads.c_str()));
    const double peak = vnni_peak(**team);
    printf("%s, %s threads: VNNI peak %.0f GOP/s, N %d K %d\n", std::string(isa_name(*isa)).c_str(), threads.c_str(),
           peak, n, k);
    for (const std::string& type_name : options.types) {
      const auto dtype = dtype_from_name(type_name);
      if (!dtype || k % packed_k_multiple(*dtype) != 0) continue;
      const Weights weights = make_weights(*dtype, n, k);
      for (const std::string& rows : options.rows) {
        const int num_rows = atoi(rows.c_str());
        const double probe_before = num_rows == 1 ? dram_probe(**team, probe) : 0;
        const Measured m = measure(kernels, **team, weights, num_rows);
        printf("  %-6s M %-4d %7.1f GOP/s (%4.1f %% of peak) %6.2f GB/s", type_name.c_str(), num_rows, m.gops,
               peak > 0 ? 100 * m.gops / peak : 0.0, m.gbs);
        if (num_rows == 1) {
          const double probe_gbs = (probe_before + dram_probe(**team, probe)) / 2;
          printf("  %.0f %% of the DRAM probe (%.1f)", 100 * m.gbs / probe_gbs, probe_gbs);
        }
        printf("\n");
        fflush(stdout);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace pagoda

int main(int argc, char** argv) {
  return pagoda::run(argc, argv);
}
