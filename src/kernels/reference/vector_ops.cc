// The definition of the row-wise operators: 16 lanes as an array, every operation as plain scalar arithmetic.

#include "kernels/vector_ops.h"

#include <cmath>
#include <limits>

#include "kernels/kernel_table.h"
#include "kernels/math.h"
#include "kernels/reference/math.h"

namespace pagoda {

namespace {

constexpr int kLanes = 16;
constexpr int32_t kSumBlock = 1024;

struct Add {
  float operator()(float a, float b) const { return a + b; }
};
struct Larger {
  float operator()(float a, float b) const { return a > b ? a : b; }
};

/// The fixed tree: +8, +4, +2, +1.
template <class Op>
float tree(const float (&lanes)[kLanes], Op op) {
  float t[kLanes];
  for (int j = 0; j < kLanes; ++j) t[j] = lanes[j];
  for (int step = 8; step > 0; step /= 2) {
    for (int j = 0; j < step; ++j) t[j] = op(t[j], t[j + step]);
  }
  return t[0];
}

void rms_norm(const float* x, const float* weight, float eps, int32_t n, float* out) {
  float lanes[kLanes] = {};
  for (int32_t i = 0; i < n; ++i) lanes[i % kLanes] = f32::fma(x[i], x[i], lanes[i % kLanes]);
  const float mean = tree(lanes, Add{}) / static_cast<float>(n);
  const float inverse = 1.0f / std::sqrt(mean + eps);
  for (int32_t i = 0; i < n; ++i) out[i] = (x[i] * inverse) * weight[i];
}

void add(const float* a, const float* b, int32_t n, float* out) {
  for (int32_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

void scale(float* x, float factor, int32_t n) {
  for (int32_t i = 0; i < n; ++i) x[i] *= factor;
}

void silu_mul(const float* gate, const float* up, int32_t n, float* out) {
  for (int32_t i = 0; i < n; ++i) out[i] = f32::silu(gate[i]) * up[i];
}

void gelu_tanh_mul(const float* gate, const float* up, int32_t n, float* out) {
  for (int32_t i = 0; i < n; ++i) out[i] = f32::gelu_tanh(gate[i]) * up[i];
}

void soft_cap(float* x, float cap, int32_t n) {
  for (int32_t i = 0; i < n; ++i) x[i] = f32::tanh(x[i] / cap) * cap;
}

void rope(float* x, const float* cos_sin, RopeLayout layout, int32_t num_heads, int32_t head_dim, int32_t rope_dim) {
  const int32_t half = rope_dim / 2;
  const bool adjacent = layout == RopeLayout::kAdjacent;
  for (int32_t h = 0; h < num_heads; ++h) {
    float* head = x + static_cast<size_t>(h) * head_dim;
    for (int32_t i = 0; i < half; ++i) {
      float& first = adjacent ? head[2 * i] : head[i];
      float& second = adjacent ? head[2 * i + 1] : head[half + i];
      const float a = first * cos_sin[i] - second * cos_sin[half + i];
      const float b = first * cos_sin[half + i] + second * cos_sin[i];
      first = a;
      second = b;
    }
  }
}

float log_sum_exp(const float* x, int32_t n) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  float largest_lanes[kLanes];
  for (float& lane : largest_lanes) lane = kMinusInfinity;
  for (int32_t i = 0; i < n; ++i) largest_lanes[i % kLanes] = Larger{}(x[i], largest_lanes[i % kLanes]);
  const float largest = tree(largest_lanes, Larger{});
  const float shift = largest == kMinusInfinity ? 0.0f : largest;
  double total = 0.0;
  for (int32_t begin = 0; begin < n; begin += kSumBlock) {
    float lanes[kLanes] = {};
    for (int32_t i = begin; i < n && i < begin + kSumBlock; ++i) lanes[i % kLanes] += f32::exp(x[i] - shift);
    total += static_cast<double>(tree(lanes, Add{}));
  }
  return static_cast<float>(static_cast<double>(shift) + math::log(total));
}

void exp_shifted(const float* x, float shift, int32_t n, float* out) {
  for (int32_t i = 0; i < n; ++i) out[i] = f32::exp(x[i] - shift);
}

constexpr VectorKernels kKernels = {rms_norm, add,  scale,       silu_mul,   gelu_tanh_mul,
                                    soft_cap, rope, log_sum_exp, exp_shifted};

}  // namespace

const VectorKernels& vector_kernels_reference() {
  return kKernels;
}

}  // namespace pagoda
