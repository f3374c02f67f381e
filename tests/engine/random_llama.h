#pragma once
// A tiny llama as a GGUF file with weights from a fixed sequence of random bits: the same bytes with every compiler.

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "formats/gguf/gguf_writer.h"
#include "tensor/dtype.h"
#include "tensor/half.h"

namespace pagoda {

struct RandomLlamaSizes {
  uint32_t hidden = 256, ffn = 256, num_layers = 2, num_heads = 4, num_kv_heads = 2, head_dim = 64, vocab = 272;
  uint32_t context = 512;
};

class RandomLlama {
 public:
  explicit RandomLlama(DType matrix_type, const RandomLlamaSizes& sizes = {}) : type_(matrix_type), sizes_(sizes) {}

  /// The model's keys and tensors; the caller adds a tokenizer if it wants one.
  GgufWriter writer() {
    GgufWriter out;
    out.add_string("general.architecture", "llama");
    out.add_string("general.name", "random");
    out.add_uint32("llama.block_count", sizes_.num_layers);
    out.add_uint32("llama.context_length", sizes_.context);
    out.add_uint32("llama.embedding_length", sizes_.hidden);
    out.add_uint32("llama.feed_forward_length", sizes_.ffn);
    out.add_uint32("llama.attention.head_count", sizes_.num_heads);
    out.add_uint32("llama.attention.head_count_kv", sizes_.num_kv_heads);
    out.add_uint32("llama.attention.key_length", sizes_.head_dim);
    out.add_uint32("llama.attention.value_length", sizes_.head_dim);
    out.add_uint32("llama.rope.dimension_count", sizes_.head_dim);
    out.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    matrix(out, "token_embd.weight", sizes_.vocab, sizes_.hidden, 16.0f);
    for (uint32_t layer = 0; layer < sizes_.num_layers; ++layer) add_layer(out, "blk." + std::to_string(layer) + ".");
    norm(out, "output_norm.weight");
    matrix(out, "output.weight", sizes_.vocab, sizes_.hidden, 4.0f);
    return out;
  }

  std::vector<uint8_t> bytes() {
    auto made = writer().to_bytes();
    return made.ok() ? std::move(made).value() : std::vector<uint8_t>();
  }

 private:
  void add_layer(GgufWriter& out, const std::string& p) {
    const uint32_t q = sizes_.num_heads * sizes_.head_dim, kv = sizes_.num_kv_heads * sizes_.head_dim;
    norm(out, p + "attn_norm.weight");
    matrix(out, p + "attn_q.weight", q, sizes_.hidden, 2.0f);
    matrix(out, p + "attn_k.weight", kv, sizes_.hidden, 2.0f);
    matrix(out, p + "attn_v.weight", kv, sizes_.hidden, 1.0f);
    matrix(out, p + "attn_output.weight", sizes_.hidden, q, 1.0f);
    norm(out, p + "ffn_norm.weight");
    matrix(out, p + "ffn_gate.weight", sizes_.ffn, sizes_.hidden, 1.0f);
    matrix(out, p + "ffn_up.weight", sizes_.ffn, sizes_.hidden, 1.0f);
    matrix(out, p + "ffn_down.weight", sizes_.hidden, sizes_.ffn, 1.0f);
  }

  uint64_t next_bits() { return mix64(state_++); }
  /// Uniform in [-1, 1), a multiple of 2^-23.
  float next_float() { return static_cast<float>(static_cast<int64_t>(next_bits() >> 40) - (1 << 23)) * 0x1p-23f; }

  void norm(GgufWriter& out, const std::string& name) {
    std::vector<float> values(sizes_.hidden);
    for (float& v : values) v = 1.0f + 0.25f * next_float();
    std::vector<uint8_t> data(values.size() * sizeof(float));
    std::memcpy(data.data(), values.data(), data.size());
    out.add_tensor(name, DType::kF32, {sizes_.hidden}, std::move(data));
  }

  /// Entries of about gain / 16 at most, so that products with rows of 256 keep their size.
  void matrix(GgufWriter& out, const std::string& name, uint32_t rows, uint32_t columns, float gain) {
    const size_t count = size_t{rows} * columns;
    const DTypeTraits& t = traits(type_);
    std::vector<uint8_t> data(dtype_bytes(type_, count));
    if (type_ == DType::kQ4_K) {
      fill_q4_k(data, gain);
    } else {
      std::vector<float> values(count);
      for (float& v : values) v = gain / 16.0f * next_float();
      t.encode(values.data(), data.data(), count / static_cast<size_t>(t.block_elements));
    }
    out.add_tensor(name, type_, {columns, rows}, std::move(data));
  }

  /// A block is d, dmin (F16), 12 bytes of 6-bit scales and minima, 128 bytes of 4-bit codes; value = d*scale*code -
  /// dmin*min. Any bits are valid; d = gain/4096 and dmin = 7.5 d centre the values at 0.
  void fill_q4_k(std::vector<uint8_t>& data, float gain) {
    constexpr size_t kBlockBytes = 144;
    for (size_t block = 0; block < data.size(); block += kBlockBytes) {
      const float d = gain / 8192.0f * (1.0f + 0.5f * next_float());
      const uint16_t scales[2] = {f32_to_f16(d), f32_to_f16(7.5f * d)};
      std::memcpy(data.data() + block, scales, sizeof scales);
      for (size_t i = sizeof scales; i < kBlockBytes; ++i) data[block + i] = static_cast<uint8_t>(next_bits() >> 56);
    }
  }

  const DType type_;
  const RandomLlamaSizes sizes_;
  uint64_t state_ = 1;
};

}  // namespace pagoda
