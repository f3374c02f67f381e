// Types of 1 and 32 elements per block; block_decode_k.cc has the 256-element ones.
#include <cstring>

#include "tensor/block_codec.h"
#include "tensor/half.h"

namespace pagoda::block_codec {
namespace {

constexpr int kBlock = 32;
constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
// E2M1 values times two; the scale carries the half.
constexpr int8_t kE2m1Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

uint16_t load_u16(const uint8_t* p) {
  uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
uint32_t load_u32(const uint8_t* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
float load_f16(const uint8_t* p) { return f16_to_f32(load_u16(p)); }

// Element j of 32: low nibbles hold the first half of the block, high nibbles the second.
int nibble(const uint8_t* packed, int j) { return j < 16 ? packed[j] & 15 : packed[j - 16] >> 4; }

// Half of 2^(e-127); e below 2 is subnormal.
float e8m0_half(uint8_t e) {
  return std::bit_cast<float>(e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23);
}

}  // namespace

void decode_f32(const uint8_t* src, float* dst, size_t num_blocks) {
  if (num_blocks != 0) std::memcpy(dst, src, num_blocks * sizeof(float));
}

void decode_f16(const uint8_t* src, float* dst, size_t num_blocks) {
  for (size_t i = 0; i < num_blocks; ++i) dst[i] = load_f16(src + 2 * i);
}

void decode_bf16(const uint8_t* src, float* dst, size_t num_blocks) {
  for (size_t i = 0; i < num_blocks; ++i) dst[i] = bf16_to_f32(load_u16(src + 2 * i));
}

// f16 scale, 16 bytes of nibbles offset by 8.
void decode_q4_0(const uint8_t* src, float* dst, size_t num_blocks) {
  for (; num_blocks-- != 0; src += 18, dst += kBlock) {
    const float d = load_f16(src);
    for (int j = 0; j < kBlock; ++j) dst[j] = d * static_cast<float>(nibble(src + 2, j) - 8);
  }
}

// f16 scale, f16 minimum, 16 bytes of nibbles.
void decode_q4_1(const uint8_t* src, float* dst, size_t num_blocks) {
  for (; num_blocks-- != 0; src += 20, dst += kBlock) {
    const float d = load_f16(src);
    const float m = load_f16(src + 2);
    for (int j = 0; j < kBlock; ++j) dst[j] = d * static_cast<float>(nibble(src + 4, j)) + m;
  }
}

// f16 scale, 32 fifth bits, 16 bytes of nibbles; offset 16.
void decode_q5_0(const uint8_t* src, float* dst, size_t num_blocks) {
  for (; num_blocks-- != 0; src += 22, dst += kBlock) {
    const float d = load_f16(src);
    const uint32_t high = load_u32(src + 2);
    for (int j = 0; j < kBlock; ++j) {
      const int q = nibble(src + 6, j) | static_cast<int>((high >> j & 1) << 4);
      dst[j] = d * static_cast<float>(q - 16);
    }
  }
}

// f16 scale, f16 minimum, 32 fifth bits, 16 bytes of nibbles.
void decode_q5_1(const uint8_t* src, float* dst, size_t num_blocks) {
  for (; num_blocks-- != 0; src += 24, dst += kBlock) {
    const float d = load_f16(src);
    const float m = load_f16(src + 2);
    const uint32_t high = load_u32(src + 4);
    for (int j = 0; j < kBlock; ++j) {
      const int q = nibble(src + 8, j) | static_cast<int>((high >> j & 1) << 4);
      dst[j] = d * static_cast<float>(q) + m;
    }
  }
}

// f16 scale, 32 signed bytes.
void decode_q8_0(const uint8_t* src, float* dst, size_t num_blocks) {
  for (; num_blocks-- != 0; src += 34, dst += kBlock) {
    const float d = load_f16(src);
    for (int j = 0; j < kBlock; ++j) dst[j] = static_cast<float>(static_cast<int8_t>(src[2 + j])) * d;
  }
}

// f16 scale, 16 bytes of nibbles that index a non-uniform grid.
void decode_iq4_nl(const uint8_t* src, float* dst, size_t num_blocks) {
  for (; num_blocks-- != 0; src += 18, dst += kBlock) {
    const float d = load_f16(src);
    for (int j = 0; j < kBlock; ++j) dst[j] = d * static_cast<float>(kIq4Values[nibble(src + 2, j)]);
  }
}

// 256 elements: f16 scale, 8 x 2 high scale bits, 8 x 4 low scale bits, then 8 groups as in IQ4_NL.
void decode_iq4_xs(const uint8_t* src, float* dst, size_t num_blocks) {
  for (; num_blocks-- != 0; src += 136) {
    const float d = load_f16(src);
    const uint32_t scales_high = load_u16(src + 2);
    for (int group = 0; group < 8; ++group, dst += kBlock) {
      const int low = src[4 + group / 2] >> (4 * (group % 2)) & 15;
      const int scale = (low | static_cast<int>((scales_high >> (2 * group) & 3) << 4)) - 32;
      const float group_scale = d * static_cast<float>(scale);
      const uint8_t* packed = src + 8 + 16 * group;
      for (int j = 0; j < kBlock; ++j) dst[j] = group_scale * static_cast<float>(kIq4Values[nibble(packed, j)]);
    }
  }
}

// One power-of-two scale byte, 16 bytes of nibbles in E2M1.
void decode_mxfp4(const uint8_t* src, float* dst, size_t num_blocks) {
  for (; num_blocks-- != 0; src += 17, dst += kBlock) {
    const float d = e8m0_half(src[0]);
    for (int j = 0; j < kBlock; ++j) dst[j] = d * static_cast<float>(kE2m1Doubled[nibble(src + 1, j)]);
  }
}

}  // namespace pagoda::block_codec
