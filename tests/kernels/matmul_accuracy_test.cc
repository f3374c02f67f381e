// The reference against a sum in F64 of the decoded weights, within a bound derived from the rule.

#include <gtest/gtest.h>

#include "matmul_data.h"

namespace pagoda {
namespace {

using test::kAllWeightKinds;
using test::make_act;
using test::make_matrix;
using test::TestMatrix;

constexpr double kRounding = 0x1p-24;  // unit roundoff of F32
constexpr double kTiny = 0x1p-126;     // the smallest normal: what a flush to zero can lose

struct Bound {
  double exact = 0;      // sum of weight * activation
  double error = 0;      // what the rule may be off by
  double magnitude = 0;  // sum of |terms| that the float steps see
};

// Weight k as |scale * value| + |minimum|: the float steps see both parts, which may nearly cancel in the weight.
double weight_magnitude(const DTypeTraits& type, const uint8_t* block, double weight) {
  const test::ScaleOffsets offsets = test::scale_offsets(type.dtype);
  if (offsets.minimum < 0) return std::fabs(weight);
  uint16_t half;
  memcpy(&half, block + offsets.minimum, 2);
  // Sub-minima have at most 6 bits; groups of 32 have none.
  const double minimum = std::fabs(static_cast<double>(f16_to_f32(half))) * (type.block_elements == 256 ? 63 : 1);
  return std::fabs(weight) + 2 * minimum;
}

double act_scale(const float* x, int n) {
  double abs_max = 0;
  for (int i = 0; i < n; ++i) abs_max = std::max(abs_max, std::fabs(static_cast<double>(x[i])));
  return abs_max / 127;
}

// Quantised: x = d (q + e), |e| <= 1/2 plus the roundings of 127/absmax, of the product and of d (3 * 127 roundoffs); a
// scale below kTiny makes the group zero. Then each group takes up to 4 roundings on sums bounded by `magnitude`, and
// each may flush: d_w * d_x is multiplied by an integer of up to 2^20, t by d_x.
Bound quantised_bound(const DTypeTraits& type, const TestMatrix& matrix, int row, const float* x, int k) {
  Bound bound;
  const int n = type.block_elements;
  const int num_groups = k / n;
  std::vector<float> weights(n);
  for (int g = 0; g < num_groups; ++g) {
    const uint8_t* block = &matrix.rows[row * matrix.row_bytes + static_cast<size_t>(g) * type.block_bytes];
    type.decode(block, weights.data(), 1);
    const double d = act_scale(x + g * n, n);
    for (int i = 0; i < n; ++i) {
      const double magnitude = weight_magnitude(type, block, weights[i]);
      const double half_step = d * (0.5 + 3 * 127 * kRounding) + (d < 2 * kTiny ? 128 * kTiny : 0.0);
      bound.exact += static_cast<double>(weights[i]) * x[g * n + i];
      bound.error += magnitude * half_step;
      // MXFP4's smallest scales are denormal, so the weights (up to 12 times the scale) count as zero.
      if (magnitude < 12 * kTiny) bound.error += magnitude * std::fabs(static_cast<double>(x[g * n + i]));
      bound.magnitude += magnitude * (127 * d);
    }
    bound.error += 4 * kTiny * (0x1p20 + d);
  }
  bound.error += bound.magnitude * kRounding * (4 + 4 * num_groups);
  return bound;
}

// Float weights: one rounding per product added; a BF16 activation (8 significant bits) is off by 2^-8 of itself;
// denormals count as zero.
Bound float_bound(const DTypeTraits& type, const TestMatrix& matrix, int row, const float* x, int k) {
  Bound bound;
  std::vector<float> weights(k);
  type.decode(&matrix.rows[row * matrix.row_bytes], weights.data(), k);
  for (int i = 0; i < k; ++i) {
    const double w = weights[i];
    bound.exact += w * x[i];
    bound.magnitude += std::fabs(w * x[i]);
    bound.error += kTiny * (1 + std::fabs(w) + std::fabs(static_cast<double>(x[i])));
  }
  if (type.dtype == DType::kBF16) bound.error += bound.magnitude * 0x1p-8;
  bound.error += bound.magnitude * kRounding * (k + 4);
  return bound;
}

class MatmulAccuracyTest : public testing::TestWithParam<DType> {};

TEST_P(MatmulAccuracyTest, ReferenceStaysWithinItsDerivedBoundOfF64) {
  const DTypeTraits& type = traits(GetParam());
  const int multiple = packed_k_multiple(GetParam());
  const MatmulKernels& kernels = matmul_kernels_reference();
  constexpr int kRows = 20, kOutputs = 19;
  int checked = 0, nonzero = 0;
  for (const int k : multiple == 256 ? std::vector<int>{256, 1280} : std::vector<int>{32, 160, 576}) {
    for (const test::WeightKind kind : kAllWeightKinds) {
      for (const int num_segments : {1, 4}) {
        const TestMatrix matrix = make_matrix(GetParam(), kOutputs, k, kind, k + 1);
        const std::vector<float> x = make_act(kRows, k, k + 2);
        const ActFormat format = act_format(GetParam());
        AlignedBuffer act = AlignedBuffer::create(kernels.act_bytes(format, kRows, k)).value();
        kernels.prepare_act(format, x.data(), k, kRows, k, 0, kernels.act_num_tiles(kRows), act.data());
        std::vector<float> out(kRows * kOutputs);
        MatmulArgs args;
        args.weights = matrix.packed;
        args.act = act.data();
        args.num_rows = kRows;
        args.panel_end = num_panels(kOutputs);
        args.num_segments = num_segments;
        args.out = out.data();
        args.out_stride = kOutputs;
        kernels.matmul(args);
        for (int m = 0; m < kRows; ++m) {
          for (int row = 0; row < kOutputs; ++row) {
            const float* act_row = &x[static_cast<size_t>(m) * k];
            const Bound bound = type.block_elements == 1 ? float_bound(type, matrix, row, act_row, k)
                                                         : quantised_bound(type, matrix, row, act_row, k);
            if (!(bound.magnitude <= 1e38)) continue;  // F32 overflow, maybe of the decoded weight itself
            const double got = out[m * kOutputs + row];
            ASSERT_LE(std::fabs(got - bound.exact), bound.error)
                << "K " << k << " kind " << static_cast<int>(kind) << " row " << m << " output " << row << ": " << got
                << " instead of " << bound.exact;
            ++checked;
            nonzero += got != 0.0;
          }
        }
      }
    }
  }
  EXPECT_GT(checked, 2000);
  EXPECT_GT(nonzero, checked / 3);
}

std::string type_name(const testing::TestParamInfo<DType>& info) {
  return std::string(traits(info.param).name);
}
INSTANTIATE_TEST_SUITE_P(Types, MatmulAccuracyTest, testing::ValuesIn(test::all_dtypes()), type_name);

}  // namespace
}  // namespace pagoda
