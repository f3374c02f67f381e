// Every instruction set against the reference, bit for bit; and the rules that hold for every row.

#include <gtest/gtest.h>

#include <bit>
#include <string>

#include "base/cpu.h"
#include "base/thread_team.h"
#include "kernels/simd/matmul_levels.h"
#include "matmul_data.h"

namespace pagoda {
namespace {

using test::kAllWeightKinds;
using test::make_act;
using test::make_matrix;
using test::TestMatrix;
using test::WeightKind;

struct Call {
  int num_segments = 1;
  const float* bias = nullptr;
  MatmulStore store = MatmulStore::kOverwrite;
  int panels_per_call = 1 << 20;
};

const MatmulKernels& kernels_of(Isa isa) {
  switch (isa) {
    case Isa::kReference:
      return matmul_kernels_reference();
    case Isa::kAvx2:
      return matmul_kernels_avx2();
    case Isa::kAvx512:
      return matmul_kernels_avx512();
    case Isa::kAvx512Vnni:
      return matmul_kernels_avx512vnni();
    // Some CPUs prefer two FMA to their BF16 dot product; the avx512vnni cases cover that way.
    case Isa::kAvx512Bf16:
      return native_bf16_matmul_kernels();
  }
  return matmul_kernels_reference();
}

// out[m * n + row], starting from `initial` in every element.
std::vector<float> multiply(Isa isa, const PackedMatrix& weights, const float* x, int num_rows, const Call& call,
                            float initial) {
  const MatmulKernels& kernels = kernels_of(isa);
  const ActFormat format = act_format(weights.dtype);
  AlignedBuffer act = AlignedBuffer::create(kernels.act_bytes(format, num_rows, weights.k)).value();
  for (int tile = 0; tile < kernels.act_num_tiles(num_rows); ++tile) {
    kernels.prepare_act(format, x, weights.k, num_rows, weights.k, tile, tile + 1, act.data());
  }
  std::vector<float> out(static_cast<size_t>(num_rows) * weights.n, initial);
  for (int panel = 0; panel < num_panels(weights.n); panel += call.panels_per_call) {
    MatmulArgs args;
    args.weights = weights;
    args.act = act.data();
    args.num_rows = num_rows;
    args.panel_begin = panel;
    args.panel_end = std::min(num_panels(weights.n), panel + std::min(call.panels_per_call, num_panels(weights.n)));
    args.num_segments = call.num_segments;
    args.bias = call.bias;
    args.store = call.store;
    args.out = out.data();
    args.out_stride = weights.n;
    kernels.matmul(args);
  }
  return out;
}

bool same_bits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

// Number of the first `count` values of `got` that differ from `want`; the first one is described.
int count_different(const std::vector<float>& got, const std::vector<float>& want, int count, int n,
                    std::string* first) {
  int different = 0;
  for (int i = 0; i < count; ++i) {
    if (same_bits(got[i], want[i])) continue;
    if (different++ == 0) {
      *first = "row " + std::to_string(i / n) + " output " + std::to_string(i % n) + ": " + std::to_string(got[i]) +
               " instead of " + std::to_string(want[i]);
    }
  }
  return different;
}

class MatmulLevelTest : public testing::TestWithParam<std::tuple<Isa, DType>> {
 protected:
  void SetUp() override {
    if (isa() > detect_isa()) GTEST_SKIP() << "this CPU has no " << isa_name(isa());
  }
  Isa isa() const { return std::get<0>(GetParam()); }
  DType dtype() const { return std::get<1>(GetParam()); }
  std::vector<int> shapes_k() const {
    if (packed_k_multiple(dtype()) == 256) return {256, 512, 1280};
    if (packed_k_multiple(dtype()) == 32) return {32, 96, 160, 576};
    return {2, 34, 64, 254};
  }
  ScopedFlushDenormals flush_;
};

constexpr int kMaxRows = 100;
constexpr int kRowCounts[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 64, 100};

// The reference is computed once for 100 rows; each M must give the same bits as its first M rows, so this also shows
// that a row's result does not depend on its company.
TEST_P(MatmulLevelTest, EqualsReferenceForEveryShapeAndExtreme) {
  uint64_t seed = 1;
  long checked = 0;
  for (const int k : shapes_k()) {
    for (const int n : {1, 15, 16, 17, 40}) {
      for (const WeightKind kind : kAllWeightKinds) {
        if (kind != WeightKind::kOrdinary && n != 17) continue;
        const TestMatrix matrix = make_matrix(dtype(), n, k, kind, ++seed);
        const std::vector<float> x = make_act(kMaxRows, k, ++seed);
        const std::vector<float> bias = make_act(1, n, ++seed);
        for (const int num_segments : {1, 4}) {
          const bool add = (seed + num_segments) % 2 == 0;
          const Call call = {num_segments, n % 2 != 0 ? bias.data() : nullptr,
                             add ? MatmulStore::kAdd : MatmulStore::kOverwrite};
          const auto want = multiply(Isa::kReference, matrix.packed, x.data(), kMaxRows, call, 0.375f);
          for (const int num_rows : kRowCounts) {
            const auto got = multiply(isa(), matrix.packed, x.data(), num_rows, call, 0.375f);
            std::string first;
            ASSERT_EQ(count_different(got, want, num_rows * n, n, &first), 0)
                << "K " << k << " N " << n << " M " << num_rows << " kind " << static_cast<int>(kind) << " segments "
                << num_segments << ": " << first;
            checked += num_rows * n;
          }
        }
      }
    }
  }
  EXPECT_GT(checked, 100000);
}

TEST_P(MatmulLevelTest, PanelRangesGiveTheSameBits) {
  const int k = shapes_k().back(), n = 150;
  const TestMatrix matrix = make_matrix(dtype(), n, k, WeightKind::kOrdinary, 77);
  const std::vector<float> x = make_act(kMaxRows, k, 78);
  const auto whole = multiply(isa(), matrix.packed, x.data(), kMaxRows, {}, 0.0f);
  for (const int panels : {1, 3, 8}) {
    const auto parts = multiply(isa(), matrix.packed, x.data(), kMaxRows, {.panels_per_call = panels}, 0.0f);
    std::string first;
    EXPECT_EQ(count_different(parts, whole, kMaxRows * n, n, &first), 0) << panels << " panels a call: " << first;
  }
}

TEST_P(MatmulLevelTest, NanAndInfinityStayInTheirRow) {
  const int k = shapes_k().back(), n = 17;
  const TestMatrix matrix = make_matrix(dtype(), n, k, WeightKind::kOrdinary, 5);
  std::vector<float> x(3 * static_cast<size_t>(k), 1.0f);
  x[k / 2] = std::numeric_limits<float>::quiet_NaN();
  x[2 * static_cast<size_t>(k) + 1] = std::numeric_limits<float>::infinity();
  const auto out = multiply(isa(), matrix.packed, x.data(), 3, {}, 0.0f);
  for (int row = 0; row < n; ++row) {
    EXPECT_TRUE(std::isnan(out[row]));
    EXPECT_TRUE(std::isfinite(out[n + row]));
    EXPECT_FALSE(std::isfinite(out[2 * n + row]));
  }
}

std::string case_name(const testing::TestParamInfo<std::tuple<Isa, DType>>& info) {
  return std::string(isa_name(std::get<0>(info.param))) + "_" + std::string(traits(std::get<1>(info.param)).name);
}

INSTANTIATE_TEST_SUITE_P(Levels, MatmulLevelTest,
                         testing::Combine(testing::Values(Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAvx512Bf16),
                                          testing::ValuesIn(test::all_dtypes())),
                         case_name);

// The definition itself must not lean on the caller's control register.
TEST(MatmulReferenceTest, SameBitsWithAndWithoutFlushToZero) {
  for (const DType dtype : test::all_dtypes()) {
    const int k = packed_k_multiple(dtype) == 256 ? 512 : 160, n = 17;
    for (const WeightKind kind : kAllWeightKinds) {
      const TestMatrix matrix = make_matrix(dtype, n, k, kind, 11);
      const std::vector<float> x = make_act(20, k, 12);
      const auto plain = multiply(Isa::kReference, matrix.packed, x.data(), 20, {.num_segments = 4}, 0.0f);
      ScopedFlushDenormals flush;
      const auto flushed = multiply(Isa::kReference, matrix.packed, x.data(), 20, {.num_segments = 4}, 0.0f);
      std::string first;
      EXPECT_EQ(count_different(flushed, plain, 20 * n, n, &first), 0) << traits(dtype).name << ": " << first;
    }
  }
}

}  // namespace
}  // namespace pagoda
