#pragma once
// ModelConfig: a decoder-only transformer as data. A reader (GGUF today) fills it with help of the architecture's
// descriptor; the Decoder is built from it and knows no architecture by name.

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/vector_ops.h"
#include "pagoda/status.h"

namespace pagoda {

class GgufFile;

enum class Activation : uint8_t { kSilu, kGeluTanh };
enum class RopeScalingKind : uint8_t { kNone, kLinear, kLlama3 };

/// Rotary embedding of some layers. Llama-3 scaling comes as one divisor per frequency, stored in the file.
struct RopeConfig {
  double base = 10000.0;
  RopeScalingKind scaling = RopeScalingKind::kNone;
  double linear_factor = 1.0;            ///< positions are divided by it (kLinear)
  std::vector<float> frequency_divisors; ///< [rope_dim / 2] (kLlama3)
};

/// What differs from layer to layer.
struct LayerConfig {
  int32_t window = 0;    ///< tokens a row sees, itself included; 0: all
  int32_t rope_idx = 0;  ///< index into ModelConfig::ropes
};

struct ModelConfig {
  std::string architecture;
  std::string name;
  int32_t vocab_size = 0;
  int32_t hidden_size = 0;
  int32_t ffn_size = 0;
  int32_t num_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t key_dim = 0;
  int32_t value_dim = 0;
  int32_t rope_dim = 0;
  int32_t context_length = 0;    ///< as trained

  float norm_eps = 0.0f;
  float attention_scale = 0.0f;
  float attention_soft_cap = 0.0f;  ///< 0: none
  float logit_soft_cap = 0.0f;      ///< 0: none
  float embedding_scale = 1.0f;
  Activation activation = Activation::kSilu;
  RopeLayout rope_layout = RopeLayout::kHalves;
  bool has_qk_norm = false;         ///< RMS norm of every query and key head
  bool has_post_norms = false;      ///< norms after attention and FFN, before their residual additions

  std::vector<RopeConfig> ropes;
  std::vector<LayerConfig> layers;

  int32_t num_layers() const { return static_cast<int32_t>(layers.size()); }
};

/// Layers with equal window share block tables.
struct KvGroup {
  int32_t window = 0;
  std::vector<int32_t> layers;
};
std::vector<KvGroup> kv_groups(const ModelConfig& config);

/// Reads and checks everything the decoder relies on. kUnimplemented: an architecture or feature Pagoda lacks, by name.
/// kDataLoss: a key missing, out of range, or contradicting another; the text names it.
Result<ModelConfig> model_config_from_gguf(const GgufFile& file);

}  // namespace pagoda
