// The definition of matrix multiplication: what every instruction set must equal bit for bit. Scalar and plain; it runs
// on any x86-64 and flushes denormals by hand, so FTZ and DAZ in the calling thread make no difference.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/kernel_table.h"
#include "kernels/matmul_layout.h"
#include "kernels/packing.h"
#include "kernels/reference/matmul_block.h"
#include "kernels/reference/matmul_float.h"
#include "tensor/half.h"

namespace pagoda {

namespace {

// ---- Activations of this level: row after row. kF32: floats. kBF16: 16-bit values. Groups: [scale F32][int8 values].

int group_k(ActFormat format) {
  return format == ActFormat::kQ8Group32 ? kGroupK : kSuperBlockK;
}

size_t row_bytes(ActFormat format, int32_t k) {
  switch (format) {
    case ActFormat::kF32:
      return static_cast<size_t>(k) * 4;
    case ActFormat::kBF16:
      return static_cast<size_t>(k) * 2;
    default:
      return static_cast<size_t>(k / group_k(format)) * (4 + group_k(format));
  }
}

size_t act_bytes(ActFormat format, int32_t num_rows, int32_t k) {
  return (row_bytes(format, k) * num_rows + 63) / 64 * 64;
}

int32_t act_num_tiles(int32_t num_rows) {
  return (num_rows + kActTileRows - 1) / kActTileRows;
}

// Scale absmax/127; values rounded to nearest even. matmul.h states what NaN, infinity and tiny groups give.
void quantise_group(const float* x, int n, uint8_t* dst) {
  uint32_t max_bits = 0;  // magnitudes order as their bits do, NaN last
  for (int i = 0; i < n; ++i) max_bits = std::max(max_bits, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
  const float abs_max = std::bit_cast<float>(max_bits);
  const bool finite = max_bits < 0x7f800000u;
  const float scale = finite ? div_flushed(abs_max, 127.0f) : std::bit_cast<float>(0x7fc00000u);
  memcpy(dst, &scale, 4);
  auto* values = reinterpret_cast<int8_t*>(dst + 4);
  if (!finite || scale == 0.0f) {
    memset(values, 0, n);
    return;
  }
  const float inverse = 127.0f / abs_max;
  for (int i = 0; i < n; ++i) {
    const float rounded = std::nearbyint(flush_denormal(x[i]) * inverse);
    values[i] = static_cast<int8_t>(std::clamp(rounded, -127.0f, 127.0f));
  }
}

void prepare_row(ActFormat format, const float* x, int32_t k, uint8_t* dst) {
  if (format == ActFormat::kF32) {
    memcpy(dst, x, static_cast<size_t>(k) * 4);
    return;
  }
  if (format == ActFormat::kBF16) {
    for (int32_t i = 0; i < k; ++i) {
      const uint16_t half = f32_to_bf16(flush_denormal(x[i]));
      memcpy(dst + 2 * static_cast<size_t>(i), &half, 2);
    }
    return;
  }
  const int n = group_k(format);
  for (int32_t i = 0; i < k; i += n) quantise_group(x + i, n, dst + static_cast<size_t>(i / n) * (4 + n));
}

void prepare_act(ActFormat format, const float* x, size_t x_stride, int32_t num_rows, int32_t k, int32_t tile_begin,
                 int32_t tile_end, uint8_t* act) {
  const int32_t row_end = std::min(num_rows, tile_end * kActTileRows);
  for (int32_t row = tile_begin * kActTileRows; row < row_end; ++row) {
    prepare_row(format, x + row * x_stride, k, act + row * row_bytes(format, k));
  }
}

// ---- One output.

// Groups of 32: one float step per group; the minimum joins the same accumulator at once.
float add_group(const WeightBlock& w, const int8_t* q, float act_scale, float acc) {
  int dot = 0, sum = 0;
  for (int k = 0; k < 32; ++k) dot += w.value[k] * q[k], sum += q[k];
  acc = fma_flushed(static_cast<float>(dot), mul_flushed(w.scale, act_scale), acc);
  if (w.has_minimum) acc = fma_flushed(w.min_scale, mul_flushed(static_cast<float>(sum), act_scale), acc);
  return acc;
}

// Super-blocks of 256: sub-scales and sub-minima are exact integers, then one float step.
float add_super_block(const WeightBlock& w, const int8_t* q, float act_scale, float acc) {
  int scaled_dot = 0, scaled_sum = 0;
  for (int j = 0; j < 256 / w.sub_block; ++j) {
    int dot = 0, sum = 0;
    for (int i = 0; i < w.sub_block; ++i) {
      dot += w.value[j * w.sub_block + i] * q[j * w.sub_block + i];
      sum += q[j * w.sub_block + i];
    }
    scaled_dot += w.sub_scale[j] * dot;
    if (w.has_minimum) scaled_sum += w.sub_min[j] * sum;
  }
  float term = mul_flushed(static_cast<float>(scaled_dot), w.scale);
  if (w.has_minimum) term = fma_flushed(-static_cast<float>(scaled_sum), w.min_scale, term);
  return fma_flushed(term, act_scale, acc);
}

float quantised_sum(const PackedMatrix& weights, int32_t row, const uint8_t* act, int k_begin, int k_end) {
  WeightBlock block;
  uint8_t bytes[256];
  const int n = group_k(act_format(weights.dtype));
  float acc = 0.0f;
  for (int k = k_begin; k < k_end; k += n) {
    unpack_block(weights, row, k / n, bytes);
    read_weight_block(weights.dtype, bytes, block);
    const uint8_t* group = act + static_cast<size_t>(k / n) * (4 + n);
    float act_scale;
    memcpy(&act_scale, group, 4);
    const auto* q = reinterpret_cast<const int8_t*>(group + 4);
    acc = n == kGroupK ? add_group(block, q, act_scale, acc) : add_super_block(block, q, act_scale, acc);
  }
  return acc;
}

float weight_value(const PackedMatrix& weights, int32_t row, int32_t k) {
  uint8_t bytes[4];
  unpack_block(weights, row, k, bytes);
  if (weights.dtype == DType::kF32) {
    float value;
    memcpy(&value, bytes, 4);
    return value;
  }
  uint16_t half;
  memcpy(&half, bytes, 2);
  return weights.dtype == DType::kF16 ? f16_to_f32(half) : bf16_to_f32(half);
}

float float_sum(const PackedMatrix& weights, int32_t row, const uint8_t* act, int k_begin, int k_end) {
  float acc = 0.0f;
  for (int k = k_begin; k < k_end; ++k) {
    float x;
    memcpy(&x, act + static_cast<size_t>(k) * 4, 4);
    acc = fma_flushed(weight_value(weights, row, k), x, acc);
  }
  return acc;
}

// Pairs along K, the odd member first: the order of the CPU's BF16 dot product.
float bf16_sum(const PackedMatrix& weights, int32_t row, const uint8_t* act, int k_begin, int k_end) {
  const auto x = [act](int k) {
    uint16_t half;
    memcpy(&half, act + static_cast<size_t>(k) * 2, 2);
    return bf16_to_f32(half);
  };
  float acc = 0.0f;
  for (int k = k_begin; k < k_end; k += 2) {
    acc = fma_flushed(weight_value(weights, row, k + 1), x(k + 1), acc);
    acc = fma_flushed(weight_value(weights, row, k), x(k), acc);
  }
  return acc;
}

float segment_sum(const PackedMatrix& weights, int32_t row, const uint8_t* act, int k_begin, int k_end) {
  switch (act_format(weights.dtype)) {
    case ActFormat::kF32:
      return float_sum(weights, row, act, k_begin, k_end);
    case ActFormat::kBF16:
      return bf16_sum(weights, row, act, k_begin, k_end);
    default:
      return quantised_sum(weights, row, act, k_begin, k_end);
  }
}

float full_sum(const MatmulArgs& args, int32_t row, const uint8_t* act) {
  const PackedMatrix& weights = args.weights;
  float sums[kMaxSegments] = {};
  for (int i = 0; i < args.num_segments; ++i) {
    const int k_begin = segment_begin_k(weights.dtype, weights.k, args.num_segments, i);
    const int k_end = segment_begin_k(weights.dtype, weights.k, args.num_segments, i + 1);
    sums[i] = segment_sum(weights, row, act, k_begin, k_end);
  }
  if (args.num_segments == 1) return sums[0];
  return add_flushed(add_flushed(sums[0], sums[1]), add_flushed(sums[2], sums[3]));
}

void matmul(const MatmulArgs& args) {
  const size_t act_row_bytes = row_bytes(act_format(args.weights.dtype), args.weights.k);
  const int32_t row_end = std::min(args.weights.n, args.panel_end * kPanelRows);
  for (int32_t m = 0; m < args.num_rows; ++m) {
    for (int32_t row = args.panel_begin * kPanelRows; row < row_end; ++row) {
      float result = full_sum(args, row, args.act + m * act_row_bytes);
      if (args.bias != nullptr) result = add_flushed(result, args.bias[row]);
      float& out = args.out[m * args.out_stride + row];
      out = args.store == MatmulStore::kAdd ? add_flushed(out, result) : result;
    }
  }
}

}  // namespace

const MatmulKernels& matmul_kernels_reference() {
  static constexpr MatmulKernels kKernels = {act_bytes, act_num_tiles, prepare_act, matmul};
  return kKernels;
}

}  // namespace pagoda
