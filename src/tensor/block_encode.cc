#include <cmath>
#include <cstring>

#include "tensor/block_codec.h"
#include "tensor/half.h"

namespace pagoda::block_codec {
namespace {

constexpr int kBlock = 32;

void store_u16(uint8_t* p, uint16_t v) { std::memcpy(p, &v, sizeof v); }

// Truncates toward zero inside [0, 15]. NaN fails the first comparison and gives 0.
uint8_t to_nibble(float v) { return v > 0.0f ? static_cast<uint8_t>(v < 15.0f ? v : 15.0f) : uint8_t{0}; }

// Half away from zero, inside [-127, 127]; NaN gives 0.
int8_t to_int8(float v) {
  if (std::isnan(v)) return 0;
  const float rounded = std::round(v);
  return static_cast<int8_t>(rounded < -127.0f ? -127.0f : (rounded > 127.0f ? 127.0f : rounded));
}

float reciprocal(float d) { return d == 0.0f ? 0.0f : 1.0f / d; }

}  // namespace

void encode_f32(const float* src, uint8_t* dst, size_t num_blocks) {
  if (num_blocks != 0) std::memcpy(dst, src, num_blocks * sizeof(float));
}

void encode_f16(const float* src, uint8_t* dst, size_t num_blocks) {
  for (size_t i = 0; i < num_blocks; ++i) store_u16(dst + 2 * i, f32_to_f16(src[i]));
}

void encode_bf16(const float* src, uint8_t* dst, size_t num_blocks) {
  for (size_t i = 0; i < num_blocks; ++i) store_u16(dst + 2 * i, f32_to_bf16(src[i]));
}

// The element of largest magnitude maps to code 0, that is -8 times the scale.
void encode_q4_0(const float* src, uint8_t* dst, size_t num_blocks) {
  for (; num_blocks-- != 0; src += kBlock, dst += 18) {
    float extreme = 0.0f;
    for (int j = 0; j < kBlock; ++j) {
      if (std::fabs(src[j]) > std::fabs(extreme)) extreme = src[j];
    }
    const float d = extreme / -8.0f;
    const float inverse = reciprocal(d);
    store_u16(dst, f32_to_f16(d));
    for (int j = 0; j < 16; ++j) {
      const int low = to_nibble(src[j] * inverse + 8.5f);
      const int high = to_nibble(src[j + 16] * inverse + 8.5f);
      dst[2 + j] = static_cast<uint8_t>(low | high << 4);
    }
  }
}

void encode_q4_1(const float* src, uint8_t* dst, size_t num_blocks) {
  for (; num_blocks-- != 0; src += kBlock, dst += 20) {
    float min = src[0];
    float max = src[0];
    for (int j = 1; j < kBlock; ++j) {
      if (src[j] < min) min = src[j];
      if (src[j] > max) max = src[j];
    }
    const float d = (max - min) / 15.0f;
    const float inverse = reciprocal(d);
    store_u16(dst, f32_to_f16(d));
    store_u16(dst + 2, f32_to_f16(min));
    for (int j = 0; j < 16; ++j) {
      const int low = to_nibble((src[j] - min) * inverse + 0.5f);
      const int high = to_nibble((src[j + 16] - min) * inverse + 0.5f);
      dst[4 + j] = static_cast<uint8_t>(low | high << 4);
    }
  }
}

void encode_q8_0(const float* src, uint8_t* dst, size_t num_blocks) {
  for (; num_blocks-- != 0; src += kBlock, dst += 34) {
    float max_abs = 0.0f;
    for (int j = 0; j < kBlock; ++j) {
      if (std::fabs(src[j]) > max_abs) max_abs = std::fabs(src[j]);
    }
    const float d = max_abs / 127.0f;
    const float inverse = reciprocal(d);
    store_u16(dst, f32_to_f16(d));
    for (int j = 0; j < kBlock; ++j) dst[2 + j] = static_cast<uint8_t>(to_int8(src[j] * inverse));
  }
}

}  // namespace pagoda::block_codec
