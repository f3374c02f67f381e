#include "kernels/vector_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "base/cpu.h"
#include "base/thread_team.h"
#include "kernels/kernel_table.h"

namespace pagoda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const int32_t kSizes[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100, 576, 640, 1023, 1025, 1536, 5000};
constexpr int kGuard = 4;  // floats behind each output that must stay untouched

struct Level {
  const char* name;
  const VectorKernels* ops;
};

class VectorOps : public testing::Test {
 protected:
  static std::vector<Level> levels() {
    std::vector<Level> list = {{"reference", &vector_kernels_reference()}};
    if (detect_isa() >= Isa::kAvx2) list.push_back({"avx2", &vector_kernels_avx2()});
    if (detect_isa() >= Isa::kAvx512) list.push_back({"avx512", &vector_kernels_avx512()});
    return list;
  }

  std::vector<float> random_values(size_t n, float scale) {
    std::normal_distribution<float> normal(0.0f, scale);
    std::vector<float> v(n);
    for (float& x : v) x = normal(random_);
    return v;
  }

  using Run = std::function<void(const VectorKernels&, std::vector<float>& x, std::vector<float>& y, int32_t n,
                                 std::vector<float>& out)>;

  /// Bits of `out` (and of x, which some operators write) on every level against the reference.
  void expect_equal_levels(const char* what, float scale, const Run& run) {
    for (const int32_t n : kSizes) {
      std::vector<float> x = random_values(n + kGuard, scale);
      std::vector<float> y = random_values(n + kGuard, 1.0f);
      const float special[] = {0.0f, -0.0f, kInfinity, -kInfinity, 88.7f, -88.7f, 1e-40f, -1e30f, 1e30f};
      for (int i = 0; i < n; ++i) {
        if (i % 13 == 5) x[i] = special[i / 13 % 9];
      }
      std::vector<float> expected_x, expected_out;
      for (const Level& level : levels()) {
        std::vector<float> level_x = x;
        std::vector<float> level_y = y;
        std::vector<float> out(n + kGuard, 77.0f);
        run(*level.ops, level_x, level_y, n, out);
        for (int i = n; i < n + kGuard; ++i) {
          ASSERT_EQ(out[i], 77.0f) << what;
          ASSERT_EQ(level_x[i], x[i]) << what;
        }
        if (expected_out.empty()) {
          expected_x = level_x;
          expected_out = out;
        }
        for (int i = 0; i < n; ++i) {
          EXPECT_TRUE(same(out[i], expected_out[i]) && same(level_x[i], expected_x[i]))
              << what << " " << level.name << " n " << n << " i " << i << " x " << x[i] << ": " << out[i] << " or "
              << level_x[i] << ", reference " << expected_out[i] << " or " << expected_x[i];
        }
      }
    }
  }

  /// Equal bits; any NaN equals any NaN.
  static bool same(float a, float b) {
    return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof(float)) == 0;
  }

  std::mt19937 random_{7};
  ScopedFlushDenormals flush_;
};

TEST_F(VectorOps, AddAndScale) {
  expect_equal_levels("add", 3.0f, [](const VectorKernels& k, auto& x, auto& y, int32_t n, auto& out) {
    k.add(x.data(), y.data(), n, out.data());
  });
  expect_equal_levels("scale", 3.0f,
                      [](const VectorKernels& k, auto& x, auto&, int32_t n, auto&) { k.scale(x.data(), 0.7f, n); });
}

TEST_F(VectorOps, Activations) {
  for (const float scale : {0.1f, 3.0f, 60.0f}) {
    expect_equal_levels("silu", scale, [](const VectorKernels& k, auto& x, auto& y, int32_t n, auto& out) {
      k.silu_mul(x.data(), y.data(), n, out.data());
    });
    expect_equal_levels("gelu", scale, [](const VectorKernels& k, auto& x, auto& y, int32_t n, auto& out) {
      k.gelu_tanh_mul(x.data(), y.data(), n, out.data());
    });
    expect_equal_levels("soft_cap", scale, [](const VectorKernels& k, auto& x, auto&, int32_t n, auto&) {
      k.soft_cap(x.data(), 30.0f, n);
    });
    expect_equal_levels("exp_shifted", scale, [](const VectorKernels& k, auto& x, auto&, int32_t n, auto& out) {
      k.exp_shifted(x.data(), 1.5f, n, out.data());
    });
  }
}

TEST_F(VectorOps, RmsNorm) {
  for (const int32_t n : kSizes) {
    const std::vector<float> x = random_values(n, 2.0f);
    const std::vector<float> weight = random_values(n, 1.0f);
    double mean = 0;
    for (const float v : x) mean += static_cast<double>(v) * v / n;
    std::vector<float> expected;
    for (const Level& level : levels()) {
      std::vector<float> out = x;  // in place
      level.ops->rms_norm(out.data(), weight.data(), 1e-5f, n, out.data());
      if (expected.empty()) expected = out;
      for (int i = 0; i < n; ++i) {
        ASSERT_TRUE(same(out[i], expected[i])) << level.name << " n " << n;
        const double exact = x[i] / std::sqrt(mean + 1e-5) * weight[i];
        // n / 16 additions of one sign a lane, halved by the root, then three roundings.
        ASSERT_NEAR(out[i], exact, (n / 16 + 8) * 6e-8 * std::fabs(exact)) << level.name;
      }
    }
  }
}

TEST_F(VectorOps, NormOfInfinityOrNanIsNotSilent) {
  for (const Level& level : levels()) {
    std::vector<float> x(33, 1.0f);
    const std::vector<float> weight(33, 1.0f);
    x[32] = std::nanf("");
    level.ops->rms_norm(x.data(), weight.data(), 1e-5f, 33, x.data());
    for (const float v : x) EXPECT_TRUE(std::isnan(v)) << level.name;
  }
}

TEST_F(VectorOps, NanStaysNan) {
  for (const Level& level : levels()) {
    const std::vector<float> up(20, 1.0f);
    const auto check = [&](const char* what, auto&& run) {
      std::vector<float> x(20, 0.5f);
      x[3] = x[18] = std::nanf("");
      run(x);
      for (int i = 0; i < 20; ++i)
        EXPECT_EQ(std::isnan(x[i]), i == 3 || i == 18) << level.name << " " << what << " " << i;
    };
    check("silu", [&](auto& x) { level.ops->silu_mul(x.data(), up.data(), 20, x.data()); });
    check("gelu", [&](auto& x) { level.ops->gelu_tanh_mul(x.data(), up.data(), 20, x.data()); });
    check("cap", [&](auto& x) { level.ops->soft_cap(x.data(), 10.0f, 20); });
    check("exp", [&](auto& x) { level.ops->exp_shifted(x.data(), 0.0f, 20, x.data()); });
    const std::vector<float> bad = {1.0f, std::nanf(""), -kInfinity};
    EXPECT_TRUE(std::isnan(level.ops->log_sum_exp(bad.data(), 3))) << level.name;
    EXPECT_TRUE(std::isnan(level.ops->log_sum_exp(bad.data() + 1, 2))) << level.name;
  }
}

TEST_F(VectorOps, RopeRotatesPairsOfBothLayouts) {
  for (const RopeLayout layout : {RopeLayout::kAdjacent, RopeLayout::kHalves}) {
    for (const int32_t rope_dim : {2, 16, 30, 32, 34, 64, 80, 128}) {
      const int32_t head_dim = rope_dim + 6;
      const int32_t heads = 3;
      const int32_t half = rope_dim / 2;
      const std::vector<float> x = random_values(head_dim * heads, 1.0f);
      std::vector<float> table(rope_dim);
      for (int i = 0; i < half; ++i) {
        table[i] = std::cos(0.3f * static_cast<float>(i + 1));
        table[half + i] = std::sin(0.3f * static_cast<float>(i + 1));
      }
      for (const Level& level : levels()) {
        std::vector<float> out = x;
        level.ops->rope(out.data(), table.data(), layout, heads, head_dim, rope_dim);
        std::vector<float> expected = x;
        for (int h = 0; h < heads; ++h) {
          for (int i = 0; i < half; ++i) {
            const int a = h * head_dim + (layout == RopeLayout::kAdjacent ? 2 * i : i);
            const int b = layout == RopeLayout::kAdjacent ? a + 1 : a + half;
            expected[a] = x[a] * table[i] - x[b] * table[half + i];
            expected[b] = x[a] * table[half + i] + x[b] * table[i];
          }
        }
        for (size_t i = 0; i < out.size(); ++i)
          ASSERT_TRUE(same(out[i], expected[i])) << level.name << " " << rope_dim << " " << i;
      }
    }
  }
}

TEST_F(VectorOps, LogSumExp) {
  for (const float scale : {0.5f, 5.0f, 40.0f}) {
    for (const int32_t n : {1, 2, 15, 16, 17, 1000, 1024, 1025, 49152, 151936}) {
      std::vector<float> x = random_values(n, scale);
      if (n > 2) x[n / 2] = -kInfinity;
      double largest = -1e300;
      for (const float v : x) largest = std::max<double>(largest, v);
      double sum = 0;
      for (const float v : x) sum += std::exp(v - largest);
      const double exact = largest + std::log(sum);
      const float expected = levels()[0].ops->log_sum_exp(x.data(), n);
      EXPECT_NEAR(expected, exact, 2e-6 + 1.2e-7 * std::fabs(exact)) << n;
      for (const Level& level : levels())
        EXPECT_TRUE(same(level.ops->log_sum_exp(x.data(), n), expected)) << level.name << " " << n;
    }
  }
}

TEST_F(VectorOps, LogSumExpOfNothing) {
  const std::vector<float> x(40, -kInfinity);
  for (const Level& level : levels()) {
    for (const int32_t n : {0, 1, 16, 40}) EXPECT_EQ(level.ops->log_sum_exp(x.data(), n), -kInfinity) << level.name;
  }
}

TEST_F(VectorOps, ExpShiftedIsExactAtItsEnds) {
  const std::vector<float> x = {3.0f, -90.0f, -kInfinity};
  for (const Level& level : levels()) {
    std::vector<float> out(3);
    level.ops->exp_shifted(x.data(), 3.0f, 3, out.data());
    EXPECT_EQ(out[0], 1.0f);
    EXPECT_EQ(out[1], 0.0f);
    EXPECT_EQ(out[2], 0.0f);
  }
}

TEST_F(VectorOps, SoftCapIsAccurate) {
  for (const Level& level : levels()) {
    std::vector<float> x;
    for (float v = -200.0f; v < 200.0f; v += 0.37f) x.push_back(v);
    std::vector<float> out = x;
    level.ops->soft_cap(out.data(), 30.0f, static_cast<int32_t>(out.size()));
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(out[i], 30.0 * std::tanh(x[i] / 30.0), 1e-5) << level.name;
  }
}

}  // namespace
}  // namespace pagoda
