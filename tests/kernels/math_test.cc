#include "kernels/math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/thread_team.h"
#include "kernels/reference/math.h"

namespace pagoda {
namespace {

double ulp(long double x) {
  int e = 0;
  std::frexp(x, &e);
  return std::ldexp(1.0, e - 53);
}

TEST(MathF64, ExpIsWithinOneUlp) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> wide(-700.0, 709.0);
  std::uniform_real_distribution<double> narrow(-2.0, 2.0);
  double worst = 0;
  for (int i = 0; i < 400000; ++i) {
    const double x = i % 2 == 0 ? wide(random) : narrow(random);
    const long double exact = std::exp(static_cast<long double>(x));
    worst = std::max(worst, static_cast<double>(std::fabs(math::exp(x) - exact)) / ulp(exact));
  }
  EXPECT_LE(worst, 1.0);
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_EQ(math::exp(0.0), 1.0);
  EXPECT_EQ(math::exp(-1000.0), 0.0);
  EXPECT_EQ(math::exp(1000.0), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(math::exp(std::nan(""))));
}

TEST(MathF64, LogIsWithinTwoUlp) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> exponent(-700.0, 700.0);
  std::uniform_real_distribution<double> near_one(0.5, 2.0);
  double worst = 0;
  for (int i = 0; i < 400000; ++i) {
    const double x = i % 2 == 0 ? std::exp(exponent(random)) : near_one(random);
    const long double exact = std::log(static_cast<long double>(x));
    worst = std::max(worst, static_cast<double>(std::fabs(math::log(x) - exact)) / ulp(exact));
  }
  EXPECT_LE(worst, 2.0);
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_EQ(math::log(1.0), 0.0);
  EXPECT_EQ(math::log(0.0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(math::log(std::numeric_limits<double>::infinity()), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(math::log(-1.0)));
  EXPECT_TRUE(std::isnan(math::log(std::nan(""))));
}

TEST(MathF64, SinAndCosHoldTheirErrorUpToTenMillion) {
  std::mt19937_64 random(3);
  double worst = 0;
  for (const double range : {1.0, 100.0, 1e5, 1e7, 1e11}) {
    std::uniform_real_distribution<double> angle(-range, range);
    for (int i = 0; i < 200000; ++i) {
      double x = angle(random);
      if (i % 4 == 0) x = std::floor(x);                       // positions times frequency 1
      if (i % 4 == 1) x = std::floor(x) * 1.5707963267948966;  // next to the zeros
      worst = std::max(worst, static_cast<double>(std::fabs(math::sin(x) - std::sin(static_cast<long double>(x)))));
      worst = std::max(worst, static_cast<double>(std::fabs(math::cos(x) - std::cos(static_cast<long double>(x)))));
    }
  }
  EXPECT_LE(worst, 1.3e-16);
  RecordProperty("worst", std::to_string(worst * 1e16) + "e-16");
  EXPECT_EQ(math::sin(0.0), 0.0);
  EXPECT_EQ(math::cos(0.0), 1.0);
  EXPECT_TRUE(std::isnan(math::sin(std::numeric_limits<double>::infinity())));
  EXPECT_TRUE(std::isnan(math::cos(2 * math::kMaxAngle)));
}

TEST(MathF64, PowGivesRopeFrequencies) {
  double worst = 0;
  for (const double base : {10000.0, 500000.0, 1e6, 5e6, 1e7}) {
    for (const int dim : {32, 64, 80, 128, 256}) {
      for (int i = 0; i < dim; i += 2) {
        const double y = -static_cast<double>(i) / dim;
        const long double exact = std::pow(static_cast<long double>(base), static_cast<long double>(y));
        worst = std::max(worst, static_cast<double>(std::fabs(math::pow(base, y) - exact) / exact));
      }
    }
  }
  EXPECT_LE(worst, 3e-15);
  RecordProperty("worst", std::to_string(worst * 1e15) + "e-15");
  EXPECT_EQ(math::pow(10000.0, 0.0), 1.0);
}

class MathF32 : public testing::Test {
  ScopedFlushDenormals flush_;
};

TEST_F(MathF32, Exp2OfNonPositives) {
  double worst = 0;
  for (float x = 0.0f; x > -119.9f; x -= 0.000137f) {
    const double exact = std::exp2(static_cast<double>(x));
    worst = std::max(worst, std::fabs(f32::exp2_nonpositive(x) - exact) / exact);
  }
  EXPECT_LE(worst, 1.8e-7);
  RecordProperty("worst", std::to_string(worst * 1e7) + "e-7");
  EXPECT_EQ(f32::exp2_nonpositive(0.0f), 1.0f);
  EXPECT_EQ(f32::exp2_nonpositive(-1.0f), 0.5f);
  EXPECT_EQ(f32::exp2_nonpositive(-120.5f), 0.0f);
  EXPECT_EQ(f32::exp2_nonpositive(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_TRUE(std::isnan(f32::exp2_nonpositive(std::nanf(""))));
}

TEST_F(MathF32, Exp) {
  double worst = 0;
  for (float x = -83.0f; x < 88.7f; x += 0.000171f) {
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::fabs(f32::exp(x) - exact) / exact);
  }
  EXPECT_LE(worst, 2.4e-7);
  RecordProperty("worst", std::to_string(worst * 1e7) + "e-7");
  EXPECT_EQ(f32::exp(0.0f), 1.0f);
  EXPECT_EQ(f32::exp(-0.0f), 1.0f);
  EXPECT_EQ(f32::exp(-84.0f), 0.0f);
  EXPECT_EQ(f32::exp(89.0f), std::numeric_limits<float>::infinity());
  EXPECT_EQ(f32::exp(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_TRUE(std::isnan(f32::exp(std::nanf(""))));
}

TEST_F(MathF32, TanhSiluAndGelu) {
  double tanh_worst = 0;
  double silu_worst = 0;
  double gelu_worst = 0;
  for (float x = -20.0f; x < 20.0f; x += 0.00007f) {
    const double d = x;
    if (std::fabs(d) > 1e-6) tanh_worst = std::max(tanh_worst, std::fabs(f32::tanh(x) / std::tanh(d) - 1.0));
    silu_worst = std::max(silu_worst, std::fabs(f32::silu(x) - d / (1.0 + std::exp(-d))) / (std::fabs(d) + 1e-3));
    const double u = std::sqrt(2.0 / 3.14159265358979323846) * (d + 0.044715 * d * d * d);
    gelu_worst =
        std::max(gelu_worst, std::fabs(f32::gelu_tanh(x) - 0.5 * d * (1.0 + std::tanh(u))) / (std::fabs(d) + 1e-3));
  }
  EXPECT_LE(tanh_worst, 4e-7);
  EXPECT_LE(silu_worst, 3e-7);
  EXPECT_LE(gelu_worst, 4e-7);
  RecordProperty("tanh", std::to_string(tanh_worst * 1e7) + "e-7");
  EXPECT_EQ(f32::tanh(0.0f), 0.0f);
  EXPECT_EQ(f32::tanh(std::numeric_limits<float>::infinity()), 1.0f);
  EXPECT_EQ(f32::tanh(-std::numeric_limits<float>::infinity()), -1.0f);
  EXPECT_TRUE(std::isnan(f32::tanh(std::nanf(""))));
}

}  // namespace
}  // namespace pagoda
