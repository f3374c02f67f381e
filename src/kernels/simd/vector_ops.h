#pragma once
// Row-wise operators and their F32 functions over any 16-lane vector type V (x86/*/vector_ops_vec16.h). Lane by lane
// the operations of reference/math.h. Included only by files of one instruction set; internal linkage throughout.

#include <math.h>

#include "kernels/math.h"
#include "kernels/reference/math.h"
#include "kernels/simd/vec_macros.h"
#include "kernels/vector_ops.h"

namespace pagoda {
namespace {

constexpr int kLanes = 16;
// log_sum_exp adds blocks of 1024 elements in F32 lanes and the blocks in F64: 64 additions a lane keep the error of a
// 100k-entry vocabulary near 1e-6.
constexpr int32_t kSumBlock = 1024;

template <class V>
PAGODA_INLINE V exp2_parts(V n, V f) {
  V p = V::set(f32::kExp2[0]);
  PAGODA_UNROLL
  for (int i = 1; i < 5; ++i) p = V::fma(p, f, V::set(f32::kExp2[i]));
  return V::fma(p, f, V::set(1.0f)).scale_by_power(n);
}

/// 2^x for x <= 0; exactly 1 at 0, exactly 0 below -120.
template <class V>
PAGODA_INLINE V exp2_nonpositive(V x) {
  const V n = x.round_even();
  return V::select_less(x, V::set(f32::kExp2Low), V::zero(), exp2_parts(n, x - n));
}

template <class V>
PAGODA_INLINE V exp_lanes(V x) {
  const V t = x * V::set(f32::kLog2e);
  const V n = t.round_even();
  const V f = V::fma(x, V::set(f32::kLog2eLow), V::fma(x, V::set(f32::kLog2e), V::zero() - n));
  const V finite = V::select_less(t, V::set(f32::kExp2Low), V::zero(), exp2_parts(n, f));
  const V below_high = V::select_less(t, V::set(f32::kExp2High), finite, V::set(f32::infinity()));
  return V::select_less(t, V::set(f32::infinity()), below_high, x + V::set(f32::infinity()));  // NaN stays, inf stays
}

template <class V>
PAGODA_INLINE V tanh_lanes(V x) {
  const V a = x.magnitude();
  const V z = x * x;
  V p = V::set(f32::kTanh[0]);
  PAGODA_UNROLL
  for (int i = 1; i < 5; ++i) p = V::fma(p, z, V::set(f32::kTanh[i]));
  const V small = V::fma(x * z, p, x);
  const V e = exp_lanes(V::set(-2.0f) * a);
  const V large = ((V::set(1.0f) - e) / (V::set(1.0f) + e)).with_sign_of(x);
  return V::select_less(a, V::set(f32::kTanhSmall), small, large);
}

template <class V>
PAGODA_INLINE V silu_lanes(V x) {
  return x / (V::set(1.0f) + exp_lanes(V::zero() - x));
}

template <class V>
PAGODA_INLINE V gelu_lanes(V x) {
  const V cubic = V::fma(x * x, V::set(f32::kGeluCubic), V::set(1.0f));
  return x / (V::set(1.0f) + exp_lanes(V::zero() - (x * V::set(f32::kGeluScale)) * cubic));
}

/// out[i] = fn(x[i], y[i]); the ragged tail in a partial vector.
template <class V, class Fn>
PAGODA_INLINE void map2(const float* x, const float* y, int32_t n, float* out, Fn fn) {
  int32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) fn(V::load(x + i), V::load(y + i)).store(out + i);
  if (i < n) fn(V::load_partial(x + i, n - i), V::load_partial(y + i, n - i)).store_partial(out + i, n - i);
}

template <class V>
struct VectorOps {
  static void rms_norm(const float* x, const float* weight, float eps, int32_t n, float* out) {
    V acc = V::zero();
    int32_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const V v = V::load(x + i);
      acc = V::fma(v, v, acc);
    }
    if (i < n) {
      const V v = V::load_partial(x + i, n - i);
      acc = V::fma(v, v, acc);
    }
    const float mean = acc.tree_sum() / static_cast<float>(n);
    const V inverse = V::set(1.0f / __builtin_sqrtf(mean + eps));
    map2<V>(x, weight, n, out, [inverse](V a, V w) __attribute__((always_inline)) { return (a * inverse) * w; });
  }

  static void add(const float* a, const float* b, int32_t n, float* out) {
    map2<V>(a, b, n, out, [](V x, V y) __attribute__((always_inline)) { return x + y; });
  }

  static void scale(float* x, float factor, int32_t n) {
    const V f = V::set(factor);
    map2<V>(x, x, n, x, [f](V a, V) __attribute__((always_inline)) { return a * f; });
  }

  static void silu_mul(const float* gate, const float* up, int32_t n, float* out) {
    map2<V>(gate, up, n, out, [](V g, V u) __attribute__((always_inline)) { return silu_lanes(g) * u; });
  }

  static void gelu_tanh_mul(const float* gate, const float* up, int32_t n, float* out) {
    map2<V>(gate, up, n, out, [](V g, V u) __attribute__((always_inline)) { return gelu_lanes(g) * u; });
  }

  static void soft_cap(float* x, float cap, int32_t n) {
    const V c = V::set(cap);
    map2<V>(x, x, n, x, [c](V a, V) __attribute__((always_inline)) { return tanh_lanes(a / c) * c; });
  }

  static PAGODA_INLINE void rotate(V& x, V& y, V cosine, V sine) {
    const V a = x * cosine - y * sine;
    y = x * sine + y * cosine;
    x = a;
  }

  static void rope(float* x, const float* cos_sin, RopeLayout layout, int32_t num_heads, int32_t head_dim,
                   int32_t rope_dim) {
    for (int32_t h = 0; h < num_heads; ++h)
      rope_head(x + static_cast<int64_t>(h) * head_dim, cos_sin, layout, rope_dim / 2);
  }

  static PAGODA_INLINE void rope_head(float* x, const float* cos_sin, RopeLayout layout, int32_t half) {
    const float* sines = cos_sin + half;
    const bool adjacent = layout == RopeLayout::kAdjacent;
    int32_t i = 0;
    for (; i + kLanes <= half; i += kLanes) {
      V a, b;
      if (adjacent) {
        V::load_pairs(x + 2 * i, a, b);
      } else {
        a = V::load(x + i);
        b = V::load(x + half + i);
      }
      rotate(a, b, V::load(cos_sin + i), V::load(sines + i));
      if (adjacent) {
        V::store_pairs(x + 2 * i, a, b);
      } else {
        a.store(x + i);
        b.store(x + half + i);
      }
    }
    for (; i < half; ++i) {
      float* first = adjacent ? x + 2 * i : x + i;
      float* second = adjacent ? first + 1 : first + half;
      const float a = *first * cos_sin[i] - *second * sines[i];
      *second = *first * sines[i] + *second * cos_sin[i];
      *first = a;
    }
  }

  static float log_sum_exp(const float* x, int32_t n) {
    const float minus_infinity = -f32::infinity();
    V most = V::set(minus_infinity);
    int32_t i = 0;
    for (; i + kLanes <= n; i += kLanes) most = V::max(V::load(x + i), most);
    if (i < n) most = V::max(V::load_partial(x + i, n - i).fill_from(n - i, minus_infinity), most);
    const float largest = most.tree_max();
    const float shift = largest == minus_infinity ? 0.0f : largest;
    double total = 0.0;
    for (int32_t begin = 0; begin < n; begin += kSumBlock) {
      const int32_t end = n - begin < kSumBlock ? n : begin + kSumBlock;
      V sum = V::zero();
      for (i = begin; i + kLanes <= end; i += kLanes) sum = sum + exp_lanes(V::load(x + i) - V::set(shift));
      if (i < end) {
        const V tail = V::load_partial(x + i, end - i).fill_from(end - i, minus_infinity);
        sum = sum + exp_lanes(tail - V::set(shift));
      }
      total += static_cast<double>(sum.tree_sum());
    }
    return static_cast<float>(static_cast<double>(shift) + math::log(total));
  }

  static void exp_shifted(const float* x, float shift, int32_t n, float* out) {
    const V s = V::set(shift);
    map2<V>(x, x, n, out, [s](V a, V) __attribute__((always_inline)) { return exp_lanes(a - s); });
  }

  static constexpr VectorKernels kKernels = {rms_norm, add,  scale,       silu_mul,   gelu_tanh_mul,
                                             soft_cap, rope, log_sum_exp, exp_shifted};
};

}  // namespace
}  // namespace pagoda
