#pragma once
// Activations into the tile layout of matmul_act.h: quantising, rounding to BF16, interleaving.

#include <string.h>

#include "kernels/simd/matmul_act.h"

namespace pagoda {
namespace {

static PAGODA_INLINE void store32(uint8_t* p, int32_t v) {
  memcpy(p, &v, 4);
}
static PAGODA_INLINE void store_float32(uint8_t* p, float v) {
  memcpy(p, &v, 4);
}

// Rounds to nearest even; denormals become zero, NaN stays a quiet NaN.
static PAGODA_INLINE uint16_t to_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 64);
  if ((bits & 0x7f800000u) == 0) return static_cast<uint16_t>(bits >> 16 & 0x8000u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

// Scale of a group of `n` values and what to multiply them by: absmax/127 and 127/absmax, or (0, 0) and (NaN, 0).
template <typename V>
static PAGODA_INLINE float group_scale(const float* x, int n, float* inverse) {
  const typename V::Ints magnitude_mask = V::set32(0x7fffffff);
  typename V::Ints max_bits = V::zero();
  for (int i = 0; i < n; i += V::kLanes) {
    max_bits = V::max_unsigned(max_bits, V::and_bits(V::as_ints(V::load_float(x + i)), magnitude_mask));
  }
  const uint32_t bits = V::reduce_max_unsigned(max_bits);
  float abs_max;
  memcpy(&abs_max, &bits, 4);
  *inverse = 0.0f;
  if (bits >= 0x7f800000u) return __builtin_nanf("");
  const float scale = abs_max / 127.0f;
  if (scale != 0.0f) *inverse = 127.0f / abs_max;
  return scale;
}

// 16 quantised values to `q`; returns their sum. An inverse of 0 stores zeros, whatever x holds.
template <typename V>
static PAGODA_INLINE int quantise16(const float* x, float inverse, uint8_t* q) {
  if (inverse == 0.0f) {
    memset(q, 0, 16);
    return 0;
  }
  uint32_t inverse_bits;
  memcpy(&inverse_bits, &inverse, 4);
  const typename V::Floats factor = V::as_float(V::set32(static_cast<int>(inverse_bits)));
  typename V::Ints sum = V::zero();
  for (int i = 0; i < 16; i += V::kLanes) {
    const typename V::Ints rounded = V::round_to_int(V::mul(V::load_float(x + i), factor));
    V::store_int8(q + i, rounded);
    sum = V::add32(sum, rounded);
  }
  return V::reduce_add(sum);
}

template <typename V>
static void prepare_group32(const float* x, int k, int stride, int column, uint8_t* tile) {
  for (int g = 0; g < k / kGroupK; ++g) {
    uint8_t* group = tile + static_cast<size_t>(g) * stride * kGroup32ColumnBytes;
    float inverse;
    const float scale = group_scale<V>(x + g * kGroupK, kGroupK, &inverse);
    uint8_t* q = group + column * kGroupK;
    const int sum = quantise16<V>(x + g * kGroupK, inverse, q) + quantise16<V>(x + g * kGroupK + 16, inverse, q + 16);
    uint8_t* fields = group + stride * kGroupK + column * 4;
    store_float32(fields + stride * 4 * kScale32, scale);
    store_float32(fields + stride * 4 * kScaledSum32, static_cast<float>(sum) * scale);
    store32(fields + stride * 4 * kStartOffset8, -8 * sum);
    store32(fields + stride * 4 * kStartOffset16, -16 * sum);
    store32(fields + stride * 4 * kStartOffset128, -128 * sum);
  }
}

static PAGODA_INLINE int32_t pair16(int low, int high) {
  return static_cast<int32_t>((static_cast<uint32_t>(low) & 0xffffu) | static_cast<uint32_t>(high) << 16);
}

// sums[0..3] as the pairs (0, 2) and (1, 3).
static PAGODA_INLINE void store_pairs(uint8_t* p, size_t field_bytes, const int* sums) {
  store32(p, pair16(sums[0], sums[2]));
  store32(p + field_bytes, pair16(sums[1], sums[3]));
}

template <typename V>
static void prepare_group256(const float* x, int k, int stride, int column, uint8_t* tile) {
  const size_t field_bytes = static_cast<size_t>(stride) * 4;
  for (int s = 0; s < k / kSuperBlockK; ++s) {
    const float* block = x + s * kSuperBlockK;
    uint8_t* group = tile + static_cast<size_t>(s) * stride * kGroup256ColumnBytes;
    float inverse;
    const float scale = group_scale<V>(block, kSuperBlockK, &inverse);
    int sums16[16], sums32[8];
    for (int j = 0; j < 16; ++j) {
      uint8_t* q = group + (static_cast<size_t>(j / 2) * stride + column) * 32 + j % 2 * 16;
      sums16[j] = quantise16<V>(block + 16 * j, inverse, q);
    }
    for (int j = 0; j < 8; ++j) sums32[j] = sums16[2 * j] + sums16[2 * j + 1];
    uint8_t* fields = group + static_cast<size_t>(stride) * kSuperBlockK + column * 4;
    store_float32(fields + field_bytes * kScale256, scale);
    for (int i = 0; i < 2; ++i) store_pairs(fields + field_bytes * (kPairsOf32 + 2 * i), field_bytes, sums32 + 4 * i);
    for (int i = 0; i < 4; ++i) store_pairs(fields + field_bytes * (kPairsOf16 + 2 * i), field_bytes, sums16 + 4 * i);
    for (int j = 0; j < 16; ++j) store32(fields + field_bytes * (kStartOf16Offset32 + j), -32 * sums16[j]);
  }
}

static PAGODA_INLINE void prepare_f32(const float* x, int k, int stride, int column, uint8_t* tile) {
  for (int i = 0; i < k; ++i) store_float32(tile + (static_cast<size_t>(i) * stride + column) * 4, x[i]);
}

static PAGODA_INLINE void prepare_bf16(const float* x, int k, int stride, int column, bool native, uint8_t* tile) {
  for (int i = 0; i < k; i += 2) {
    const uint32_t even = to_bf16(x[i]), odd = to_bf16(x[i + 1]);
    const size_t at = static_cast<size_t>(i / 2) * stride + column;
    if (native) {
      store32(tile + at * 4, static_cast<int32_t>(even | odd << 16));
    } else {
      store32(tile + at * 8, static_cast<int32_t>(odd << 16));
      store32(tile + at * 8 + 4, static_cast<int32_t>(even << 16));
    }
  }
}

template <typename V, bool kNativeBf16>
static size_t act_bytes(ActFormat format, int32_t num_rows, int32_t k) {
  return (act_column_bytes(format, k, kNativeBf16) * num_rows + 63) / 64 * 64;
}

static int32_t act_num_tiles(int32_t num_rows) {
  return (num_rows + kActTileRows - 1) / kActTileRows;
}

template <typename V, bool kNativeBf16>
static void prepare_act(ActFormat format, const float* x, size_t x_stride, int32_t num_rows, int32_t k,
                        int32_t tile_begin, int32_t tile_end, uint8_t* act) {
  const size_t tile_bytes = act_column_bytes(format, k, kNativeBf16) * kActTileRows;
  for (int32_t tile = tile_begin; tile < tile_end; ++tile) {
    const int columns = act_tile_columns(num_rows, tile);
    uint8_t* dst = act + tile * tile_bytes;
    for (int c = 0; c < columns; ++c) {
      const float* row = x + (static_cast<size_t>(tile) * kActTileRows + c) * x_stride;
      switch (format) {
        case ActFormat::kF32:
          prepare_f32(row, k, columns, c, dst);
          break;
        case ActFormat::kBF16:
          prepare_bf16(row, k, columns, c, kNativeBf16, dst);
          break;
        case ActFormat::kQ8Group32:
          prepare_group32<V>(row, k, columns, c, dst);
          break;
        case ActFormat::kQ8Group256:
          prepare_group256<V>(row, k, columns, c, dst);
          break;
      }
    }
  }
}

}  // namespace
}  // namespace pagoda
