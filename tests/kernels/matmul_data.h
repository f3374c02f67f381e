#pragma once
// Inputs for the matmul tests: GGUF blocks and activations, ordinary and extreme, from a seed.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/kernel_table.h"
#include "kernels/packing.h"
#include "tensor/dtype.h"
#include "tensor/half.h"

namespace pagoda::test {

/// Small generator with a fixed algorithm (xorshift64*), so that every compiler tests the same numbers.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}
  uint64_t next() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return (state_ * 0x2545F4914F6CDD1Dull) >> 16;
  }
  float uniform() { return static_cast<float>(next() & 0xffffff) * 0x1p-24f; }
  /// Sum of four uniforms: bell-shaped, mean 0, variance 1/3.
  float bell() { return uniform() + uniform() + uniform() + uniform() - 2.0f; }

 private:
  uint64_t state_;
};

enum class WeightKind { kOrdinary, kSaturated, kZeroAndNegativeZero, kDenormalAndMaxScale };
inline constexpr WeightKind kAllWeightKinds[] = {WeightKind::kOrdinary, WeightKind::kSaturated,
                                                 WeightKind::kZeroAndNegativeZero, WeightKind::kDenormalAndMaxScale};

/// Byte offsets of the F16 scales within a block; -1: none.
struct ScaleOffsets {
  int scale = -1;
  int minimum = -1;
};

inline ScaleOffsets scale_offsets(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
    case DType::kQ5_0:
    case DType::kQ8_0:
    case DType::kIQ4_NL:
    case DType::kIQ4_XS:
      return {0, -1};
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108, -1};
    case DType::kQ6_K:
      return {208, -1};
    default:
      return {};
  }
}

inline uint16_t f16_scale(WeightKind kind, Random& random) {
  switch (kind) {
    case WeightKind::kZeroAndNegativeZero:
      return random.next() & 1 ? 0x8000 : 0x0000;
    case WeightKind::kDenormalAndMaxScale:
      return random.next() & 1 ? 0x0001 : (random.next() & 1 ? 0x7bff : 0xfbff);
    default:
      return f32_to_f16(0.02f * (random.uniform() - 0.3f));
  }
}

inline void fill_float(DType dtype, WeightKind kind, Random& random, uint8_t* dst) {
  float value = random.bell();
  if (kind == WeightKind::kSaturated) value *= 1000.0f;
  if (kind == WeightKind::kZeroAndNegativeZero && random.next() % 4 != 0) value = random.next() & 1 ? -0.0f : 0.0f;
  if (kind == WeightKind::kDenormalAndMaxScale) value *= random.next() & 1 ? 1e-20f : 1e-39f;
  if (dtype == DType::kF32) {
    memcpy(dst, &value, 4);
    return;
  }
  if (dtype == DType::kF16 && kind == WeightKind::kDenormalAndMaxScale) value *= 1e14f;  // F16 denormals
  const uint16_t half = dtype == DType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
  memcpy(dst, &half, 2);
}

inline void fill_block(DType dtype, WeightKind kind, Random& random, uint8_t* dst) {
  const DTypeTraits& type = traits(dtype);
  if (type.block_elements == 1) return fill_float(dtype, kind, random, dst);
  for (int i = 0; i < type.block_bytes; ++i) {
    dst[i] = static_cast<uint8_t>(random.next());
    if (kind == WeightKind::kSaturated) dst[i] = random.next() % 64 != 0 ? 0xff : (random.next() & 1 ? 0x00 : 0x80);
  }
  const ScaleOffsets offsets = scale_offsets(dtype);
  for (const int offset : {offsets.scale, offsets.minimum}) {
    if (offset < 0) continue;
    const uint16_t half = f16_scale(kind, random);
    memcpy(dst + offset, &half, 2);
  }
  if (dtype == DType::kMXFP4) {
    const uint8_t extremes[] = {0, 1, 2, 254, 255};
    dst[0] = kind == WeightKind::kDenormalAndMaxScale ? extremes[random.next() % 5]
                                                      : static_cast<uint8_t>(118 + random.next() % 12);
  }
}

/// A matrix as GGUF rows and as panels.
struct TestMatrix {
  std::vector<uint8_t> rows;
  size_t row_bytes = 0;
  AlignedBuffer panels;
  PackedMatrix packed;
};

inline TestMatrix make_matrix(DType dtype, int n, int k, WeightKind kind, uint64_t seed) {
  TestMatrix matrix;
  Random random(seed);
  const DTypeTraits& type = traits(dtype);
  matrix.row_bytes = dtype_bytes(dtype, k);
  matrix.rows.resize(matrix.row_bytes * n);
  for (size_t i = 0; i < matrix.rows.size(); i += type.block_bytes) fill_block(dtype, kind, random, &matrix.rows[i]);
  const size_t panel_bytes = packed_panel_bytes(dtype, k);
  matrix.panels = AlignedBuffer::create(panel_bytes * num_panels(n)).value();
  for (int p = 0; p < num_panels(n); ++p) {
    pack_panel(dtype, &matrix.rows[p * kPanelRows * matrix.row_bytes], matrix.row_bytes,
               std::min(kPanelRows, n - p * kPanelRows), k, matrix.panels.data() + p * panel_bytes);
  }
  matrix.packed = {dtype, n, k, matrix.panels.data(), panel_bytes};
  return matrix;
}

/// One row of activations; `kind` picks among ordinary and extreme rows.
inline void fill_act_row(int kind, int k, Random& random, float* x) {
  for (int i = 0; i < k; ++i) {
    switch (kind % 10) {
      case 0:
        x[i] = random.bell();
        break;
      case 1:
        x[i] = random.next() & 16 ? 3.0f : -3.0f;
        break;
      case 2:
        x[i] = i / 32 % 3 == 1 ? 0.0f : 1000.0f * random.bell();
        break;
      case 3:
        x[i] = (i % 97 == 5 ? 100.0f : 1.0f) * random.bell();
        break;
      case 4:
        x[i] = (random.next() & 8 ? 1e-38f : 1e-41f) * random.bell();
        break;  // denormals
      case 5:
        x[i] = random.next() & 1 ? 0.0f : -0.0f;
        break;
      case 6:
        x[i] = 5.0f;
        break;
      case 7:
        x[i] = 2e-36f * random.bell();
        break;  // scales around the smallest normal number
      case 8:
        x[i] = 1e37f * random.bell();
        break;
      default:
        x[i] = 1e-3f * random.bell() + 0.5f;
        break;
    }
  }
}

inline std::vector<float> make_act(int num_rows, int k, uint64_t seed) {
  std::vector<float> x(static_cast<size_t>(num_rows) * k);
  Random random(seed);
  for (int m = 0; m < num_rows; ++m) fill_act_row(m, k, random, &x[static_cast<size_t>(m) * k]);
  return x;
}

inline std::vector<DType> all_dtypes() {
  std::vector<DType> types;
  for (int i = 0; i < kNumDTypes; ++i) types.push_back(static_cast<DType>(i));
  return types;
}

}  // namespace pagoda::test
