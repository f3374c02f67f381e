// The K types: 256 elements per block, cut into groups of 16 or 32 that have small integer scales of their own.
#include <cstring>

#include "tensor/block_codec.h"
#include "tensor/half.h"

namespace pagoda::block_codec {
namespace {

constexpr int kBlock = 256;

float load_f16(const uint8_t* p) {
  uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return f16_to_f32(v);
}

struct ScaleMin {
  int scale;
  int min;
};

// Eight 6-bit scales and minima in 12 bytes: groups 0-3 in the low six bits of bytes 0-3 and 4-7; groups 4-7 have
// their low four bits in bytes 8-11 and their high two bits on top of the earlier bytes.
ScaleMin unpack_scale_min(const uint8_t* packed, int group) {
  if (group < 4) return {packed[group] & 63, packed[group + 4] & 63};
  const int g = group - 4;
  return {(packed[8 + g] & 15) | (packed[g] >> 6 << 4), (packed[8 + g] >> 4) | (packed[4 + g] >> 6 << 4)};
}

}  // namespace

// 16 x (4-bit scale, 4-bit minimum), 64 bytes of 2-bit values, f16 scale, f16 minimum scale.
void decode_q2_k(const uint8_t* src, float* dst, size_t num_blocks) {
  for (; num_blocks-- != 0; src += 84, dst += kBlock) {
    const uint8_t* values = src + 16;
    const float d = load_f16(src + 80);
    const float d_min = load_f16(src + 82);
    for (int j = 0; j < kBlock; ++j) {
      const uint8_t packed = src[j / 16];
      const int q = values[j / 128 * 32 + j % 32] >> (j % 128 / 32 * 2) & 3;
      dst[j] = d * static_cast<float>(packed & 15) * static_cast<float>(q) - d_min * static_cast<float>(packed >> 4);
    }
  }
}

// 32 bytes of third bits (set: no offset), 64 bytes of 2-bit values, 16 six-bit scales in 12 bytes, f16 scale.
void decode_q3_k(const uint8_t* src, float* dst, size_t num_blocks) {
  for (; num_blocks-- != 0; src += 110, dst += kBlock) {
    const uint8_t* values = src + 32;
    const uint8_t* scales = src + 96;
    const float d = load_f16(src + 108);
    float group_scales[16];
    for (int g = 0; g < 16; ++g) {
      const int low = scales[g % 8] >> (g / 8 * 4) & 15;
      const int high = scales[8 + g % 4] >> (g / 4 * 2) & 3;
      group_scales[g] = d * static_cast<float>((low | high << 4) - 32);
    }
    for (int j = 0; j < kBlock; ++j) {
      const int low = values[j / 128 * 32 + j % 32] >> (j % 128 / 32 * 2) & 3;
      const int high = src[j % 32] >> (j / 32) & 1;
      dst[j] = group_scales[j / 16] * static_cast<float>(low - (high != 0 ? 0 : 4));
    }
  }
}

// f16 scale, f16 minimum scale, 12 bytes of group scales, 128 bytes of nibbles.
void decode_q4_k(const uint8_t* src, float* dst, size_t num_blocks) {
  for (; num_blocks-- != 0; src += 144) {
    const float d = load_f16(src);
    const float d_min = load_f16(src + 2);
    for (int group = 0; group < 8; ++group, dst += 32) {
      const ScaleMin sm = unpack_scale_min(src + 4, group);
      const float scale = d * static_cast<float>(sm.scale);
      const float min = d_min * static_cast<float>(sm.min);
      const uint8_t* values = src + 16 + group / 2 * 32;
      for (int j = 0; j < 32; ++j) dst[j] = scale * static_cast<float>(values[j] >> (group % 2 * 4) & 15) - min;
    }
  }
}

// As Q4_K with 32 bytes of fifth bits before the nibbles.
void decode_q5_k(const uint8_t* src, float* dst, size_t num_blocks) {
  for (; num_blocks-- != 0; src += 176) {
    const float d = load_f16(src);
    const float d_min = load_f16(src + 2);
    const uint8_t* high = src + 16;
    for (int group = 0; group < 8; ++group, dst += 32) {
      const ScaleMin sm = unpack_scale_min(src + 4, group);
      const float scale = d * static_cast<float>(sm.scale);
      const float min = d_min * static_cast<float>(sm.min);
      const uint8_t* values = src + 48 + group / 2 * 32;
      for (int j = 0; j < 32; ++j) {
        const int q = (values[j] >> (group % 2 * 4) & 15) | (high[j] >> group & 1) << 4;
        dst[j] = scale * static_cast<float>(q) - min;
      }
    }
  }
}

// 128 bytes of low nibbles, 64 bytes of high 2-bit parts, 16 signed byte scales, f16 scale; offset 32.
void decode_q6_k(const uint8_t* src, float* dst, size_t num_blocks) {
  for (; num_blocks-- != 0; src += 210, dst += kBlock) {
    const uint8_t* high = src + 128;
    const uint8_t* scales = src + 192;
    const float d = load_f16(src + 208);
    for (int j = 0; j < kBlock; ++j) {
      const int half = j / 128;
      const int low4 = src[half * 64 + j % 64] >> (j % 128 / 64 * 4) & 15;
      const int high2 = high[half * 32 + j % 32] >> (j % 128 / 32 * 2) & 3;
      const float scale = d * static_cast<float>(static_cast<int8_t>(scales[j / 16]));
      dst[j] = scale * static_cast<float>((low4 | high2 << 4) - 32);
    }
  }
}

}  // namespace pagoda::block_codec
