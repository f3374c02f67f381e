#pragma once
// Reference decoders and encoders behind the dtype table. Callers go through traits(dtype); shapes and alignment rules
// are those of DTypeTraits. Decoders evaluate in the same order as the `gguf` Python package, so results are bit-equal.

#include <cstddef>
#include <cstdint>

namespace pagoda::block_codec {

void decode_f32(const uint8_t* src, float* dst, size_t num_blocks);
void decode_f16(const uint8_t* src, float* dst, size_t num_blocks);
void decode_bf16(const uint8_t* src, float* dst, size_t num_blocks);
void decode_q4_0(const uint8_t* src, float* dst, size_t num_blocks);
void decode_q4_1(const uint8_t* src, float* dst, size_t num_blocks);
void decode_q5_0(const uint8_t* src, float* dst, size_t num_blocks);
void decode_q5_1(const uint8_t* src, float* dst, size_t num_blocks);
void decode_q8_0(const uint8_t* src, float* dst, size_t num_blocks);
void decode_q2_k(const uint8_t* src, float* dst, size_t num_blocks);
void decode_q3_k(const uint8_t* src, float* dst, size_t num_blocks);
void decode_q4_k(const uint8_t* src, float* dst, size_t num_blocks);
void decode_q5_k(const uint8_t* src, float* dst, size_t num_blocks);
void decode_q6_k(const uint8_t* src, float* dst, size_t num_blocks);
void decode_iq4_nl(const uint8_t* src, float* dst, size_t num_blocks);
void decode_iq4_xs(const uint8_t* src, float* dst, size_t num_blocks);
void decode_mxfp4(const uint8_t* src, float* dst, size_t num_blocks);

// Finite input is expected. A NaN element gets code 0 in the block types; a scale beyond F16 becomes infinity.
void encode_f32(const float* src, uint8_t* dst, size_t num_blocks);
void encode_f16(const float* src, uint8_t* dst, size_t num_blocks);
void encode_bf16(const float* src, uint8_t* dst, size_t num_blocks);
void encode_q4_0(const float* src, uint8_t* dst, size_t num_blocks);
void encode_q4_1(const float* src, uint8_t* dst, size_t num_blocks);
void encode_q8_0(const float* src, uint8_t* dst, size_t num_blocks);

}  // namespace pagoda::block_codec
