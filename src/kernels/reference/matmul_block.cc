#include "kernels/reference/matmul_block.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "tensor/half.h"

namespace pagoda {

namespace {

// Non-uniform 4-bit codebook of IQ4_NL and IQ4_XS, and the doubled E2M1 values of MXFP4.
constexpr int kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr int kMxfp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

float read_f16(const uint8_t* p) {
  uint16_t half;
  memcpy(&half, p, sizeof half);
  return f16_to_f32(half);
}

uint32_t read_u32(const uint8_t* p) {
  uint32_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

// 32 nibbles of a group: k < 16 in the low halves of 16 bytes, the rest in the high halves.
int split_nibble(const uint8_t* quants, int k) {
  return k < 16 ? quants[k] & 15 : quants[k - 16] >> 4;
}

void read_group(DType dtype, const uint8_t* bytes, WeightBlock& block) {
  block.block_k = block.sub_block = 32;
  block.sub_scale[0] = 1;
  block.has_minimum = dtype == DType::kQ4_1 || dtype == DType::kQ5_1;
  block.scale = read_f16(bytes);
  if (block.has_minimum) block.min_scale = read_f16(bytes + 2);
  const bool five_bits = dtype == DType::kQ5_0 || dtype == DType::kQ5_1;
  const uint8_t* quants = bytes + (block.has_minimum ? 4 : 2);
  const uint32_t fifth_bits = five_bits ? read_u32(quants) : 0;
  if (five_bits) quants += 4;
  if (dtype == DType::kMXFP4) {
    quants = bytes + 1;
    // 2^(e - 128): the codebook holds doubled values.
    block.scale =
        bytes[0] < 2 ? std::bit_cast<float>(0x00200000u << bytes[0]) : std::bit_cast<float>((bytes[0] - 1u) << 23);
  }
  for (int k = 0; k < 32; ++k) {
    if (dtype == DType::kQ8_0) {
      block.value[k] = static_cast<int8_t>(quants[k]);
      continue;
    }
    const int nibble = split_nibble(quants, k);
    const int five = nibble | static_cast<int>((fifth_bits >> k) & 1u) << 4;
    switch (dtype) {
      case DType::kQ4_0:
        block.value[k] = nibble - 8;
        break;
      case DType::kQ5_0:
        block.value[k] = five - 16;
        break;
      case DType::kIQ4_NL:
        block.value[k] = kIq4Values[nibble];
        break;
      case DType::kMXFP4:
        block.value[k] = kMxfp4Values[nibble];
        break;
      default:
        block.value[k] = five;
        break;  // Q4_1, Q5_1: unsigned with a minimum
    }
  }
}

void read_q2_k(const uint8_t* bytes, WeightBlock& block) {
  block.sub_block = 16;
  block.has_minimum = true;
  block.scale = read_f16(bytes + 80);
  block.min_scale = read_f16(bytes + 82);
  for (int j = 0; j < 16; ++j) block.sub_scale[j] = bytes[j] & 15, block.sub_min[j] = bytes[j] >> 4;
  for (int k = 0; k < 256; ++k) block.value[k] = (bytes[16 + k / 128 * 32 + k % 32] >> (k % 128 / 32 * 2)) & 3;
}

void read_q3_k(const uint8_t* bytes, WeightBlock& block) {
  block.sub_block = 16;
  block.scale = read_f16(bytes + 108);
  const uint8_t* scales = bytes + 96;  // low nibbles of 16 scales in bytes 0..7, pairs of high bits in bytes 8..11
  for (int j = 0; j < 16; ++j) {
    const int low = (scales[j % 8] >> (j < 8 ? 0 : 4)) & 15;
    const int high = (scales[8 + j % 4] >> (2 * (j / 4))) & 3;
    block.sub_scale[j] = (low | high << 4) - 32;
  }
  for (int k = 0; k < 256; ++k) {
    const int low = (bytes[32 + k / 128 * 32 + k % 32] >> (k % 128 / 32 * 2)) & 3;
    const int high = (bytes[k % 32] >> (k / 32)) & 1;
    block.value[k] = (low | high << 2) - 4;
  }
}

// Q4_K and Q5_K: eight 6-bit scales and minima in 12 bytes.
void read_q4_k_or_q5_k(const uint8_t* bytes, bool five_bits, WeightBlock& block) {
  block.sub_block = 32;
  block.has_minimum = true;
  block.scale = read_f16(bytes);
  block.min_scale = read_f16(bytes + 2);
  const uint8_t* packed = bytes + 4;
  for (int j = 0; j < 8; ++j) {
    if (j < 4) {
      block.sub_scale[j] = packed[j] & 63;
      block.sub_min[j] = packed[j + 4] & 63;
    } else {
      block.sub_scale[j] = (packed[j + 4] & 15) | packed[j - 4] >> 6 << 4;
      block.sub_min[j] = packed[j + 4] >> 4 | packed[j] >> 6 << 4;
    }
  }
  const uint8_t* fifth_bits = bytes + 16;
  const uint8_t* quants = bytes + (five_bits ? 48 : 16);
  for (int k = 0; k < 256; ++k) {
    const int j = k / 32;
    const int nibble = (quants[j / 2 * 32 + k % 32] >> (j % 2 * 4)) & 15;
    block.value[k] = five_bits ? nibble | ((fifth_bits[k % 32] >> j) & 1) << 4 : nibble;
  }
}

void read_q6_k(const uint8_t* bytes, WeightBlock& block) {
  block.sub_block = 16;
  block.scale = read_f16(bytes + 208);
  for (int j = 0; j < 16; ++j) block.sub_scale[j] = static_cast<int8_t>(bytes[192 + j]);
  for (int k = 0; k < 256; ++k) {
    const int half = k / 128, quarter = k % 128 / 32, l = k % 32;
    const int low = (bytes[half * 64 + quarter % 2 * 32 + l] >> (quarter / 2 * 4)) & 15;
    const int high = (bytes[128 + half * 32 + l] >> (2 * quarter)) & 3;
    block.value[k] = (low | high << 4) - 32;
  }
}

void read_iq4_xs(const uint8_t* bytes, WeightBlock& block) {
  block.sub_block = 32;
  block.scale = read_f16(bytes);
  for (int j = 0; j < 8; ++j) {
    const int low = (bytes[4 + j / 2] >> (j % 2 * 4)) & 15;
    const int high = (bytes[2 + j / 4] >> (j % 4 * 2)) & 3;
    block.sub_scale[j] = (low | high << 4) - 32;
    for (int k = 0; k < 32; ++k) block.value[32 * j + k] = kIq4Values[split_nibble(bytes + 8 + 16 * j, k)];
  }
}

}  // namespace

void read_weight_block(DType dtype, const uint8_t* bytes, WeightBlock& block) {
  block.block_k = 256;
  block.has_minimum = false;
  switch (dtype) {
    case DType::kQ2_K:
      return read_q2_k(bytes, block);
    case DType::kQ3_K:
      return read_q3_k(bytes, block);
    case DType::kQ4_K:
      return read_q4_k_or_q5_k(bytes, false, block);
    case DType::kQ5_K:
      return read_q4_k_or_q5_k(bytes, true, block);
    case DType::kQ6_K:
      return read_q6_k(bytes, block);
    case DType::kIQ4_XS:
      return read_iq4_xs(bytes, block);
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      PAGODA_CHECK(false);
      return;
    default:
      return read_group(dtype, bytes, block);
  }
}

}  // namespace pagoda
