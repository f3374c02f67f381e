#pragma once
// Row-wise operators: norms, activations, rotary embedding, soft-cap, log-sum-exp. C-clean.
//
// Every reduction runs over 16 lanes (lane j takes elements j, 16+j, ...; a ragged tail fills the low lanes of a last
// partial group) and the fixed tree +8, +4, +2, +1. Transcendentals are the polynomials of kernels/reference/math.h.
// All instruction sets give the same bits. FTZ and DAZ must be on. NaN inputs give NaN outputs.

#include <stddef.h>
#include <stdint.h>

namespace pagoda {

/// How rotary embedding pairs the dimensions of a head.
enum class RopeLayout : uint8_t {
  kAdjacent,  ///< (0,1), (2,3), ...: GGUF "norm", the order of permuted llama weights
  kHalves,    ///< (0, d/2), (1, d/2+1), ...: GGUF "neox"
};

struct VectorKernels {
  /// out[i] = x[i] * (1 / sqrt(mean(x^2) + eps)) * weight[i]; division and square root IEEE. out may be x.
  void (*rms_norm)(const float* x, const float* weight, float eps, int32_t n, float* out);
  /// out[i] = a[i] + b[i]; out may be a or b.
  void (*add)(const float* a, const float* b, int32_t n, float* out);
  /// x[i] *= factor.
  void (*scale)(float* x, float factor, int32_t n);
  /// out[i] = silu(gate[i]) * up[i], silu(x) = x / (1 + e^-x). out may be gate or up.
  void (*silu_mul)(const float* gate, const float* up, int32_t n, float* out);
  /// out[i] = gelu_tanh(gate[i]) * up[i], the tanh approximation with sqrt(2/pi) and 0.044715.
  void (*gelu_tanh_mul)(const float* gate, const float* up, int32_t n, float* out);
  /// x[i] = cap * tanh(x[i] / cap).
  void (*soft_cap)(float* x, float cap, int32_t n);
  /// Rotates the first `rope_dim` dimensions of each of `num_heads` heads (head_dim apart) in place.
  /// cos_sin: [rope_dim/2] cosines, then [rope_dim/2] sines, of the row's position.
  void (*rope)(float* x, const float* cos_sin, RopeLayout layout, int32_t num_heads, int32_t head_dim, int32_t rope_dim);
  /// log(sum exp(x[i])); -inf entries add nothing; all -inf gives -inf.
  float (*log_sum_exp)(const float* x, int32_t n);
  /// out[i] = exp(x[i] - shift); exact 1 at 0, exact 0 below about -83.
  void (*exp_shifted)(const float* x, float shift, int32_t n, float* out);
};

}  // namespace pagoda
