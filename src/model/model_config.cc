#include "model/model_config.h"

#include <cmath>
#include <cstring>

#include "formats/gguf/gguf_file.h"
#include "model/architecture.h"

namespace pagoda {

namespace {

constexpr uint64_t kMaxLayers = 4096;
constexpr uint64_t kMaxWidth = 1u << 20;    // hidden, FFN: three times the largest known model
constexpr uint64_t kMaxHeads = 4096;
constexpr uint64_t kMaxHeadDim = 1024;
constexpr uint64_t kMaxContext = 1u << 26;
constexpr uint64_t kMaxVocab = 4u << 20;

// Reads "<architecture>.<suffix>" keys with ranges, remembering the file for the error text.
class KeyReader {
 public:
  KeyReader(const GgufFile& file, std::string architecture) : file_(file), prefix_(std::move(architecture) + ".") {}

  Status error(const std::string& suffix, const std::string& why) const {
    return data_loss(file_.path() + ": " + prefix_ + suffix + " " + why);
  }

  // An unsigned integer in [low, high]. Per-layer arrays are accepted when all entries are equal.
  Result<int32_t> integer(const std::string& suffix, uint64_t low, uint64_t high, std::optional<uint64_t> fallback) const {
    const GgufValue* value = file_.find(prefix_ + suffix);
    uint64_t number = 0;
    if (value == nullptr) {
      if (!fallback) return error(suffix, "is missing");
      number = *fallback;
    } else if (std::holds_alternative<GgufArray>(value->data)) {
      PAGODA_ASSIGN_OR_RETURN(number, uniform_array(suffix, std::get<GgufArray>(value->data)));
    } else {
      PAGODA_ASSIGN_OR_RETURN(const auto read, file_.get_uint(prefix_ + suffix));
      number = read.value_or(0);
    }
    if (number < low || number > high) {
      return error(suffix, "= " + std::to_string(number) + " is outside " + std::to_string(low) + ".." + std::to_string(high));
    }
    return static_cast<int32_t>(number);
  }

  Result<double> real(const std::string& suffix, double low, double high, std::optional<double> fallback) const {
    PAGODA_ASSIGN_OR_RETURN(const auto read, file_.get_float(prefix_ + suffix));
    if (!read && !fallback) return error(suffix, "is missing");
    const double number = read ? *read : *fallback;
    if (!(number >= low && number <= high)) {
      return error(suffix, "= " + std::to_string(number) + " is outside " + std::to_string(low) + ".." + std::to_string(high));
    }
    return number;
  }

  Result<std::string> text(const std::string& suffix, const std::string& fallback) const {
    PAGODA_ASSIGN_OR_RETURN(const std::string* read, file_.get_string(prefix_ + suffix));
    return read == nullptr ? fallback : *read;
  }

 private:
  Result<uint64_t> uniform_array(const std::string& suffix, const GgufArray& array) const {
    std::optional<uint64_t> first;
    const auto same = [&](auto n) {
      if (n < 0) return false;
      const auto u = static_cast<uint64_t>(n);
      if (!first) first = u;
      return *first == u;
    };
    bool uniform = array.size() > 0;
    if (const auto* u = std::get_if<std::vector<uint64_t>>(&array.values)) {
      for (const uint64_t n : *u) uniform = uniform && same(static_cast<int64_t>(n));
    } else if (const auto* s = std::get_if<std::vector<int64_t>>(&array.values)) {
      for (const int64_t n : *s) uniform = uniform && same(n);
    } else {
      return error(suffix, "must be an integer or an array of integers");
    }
    if (!uniform) {
      return unimplemented(file_.path() + ": " + prefix_ + suffix + " differs from layer to layer, which Pagoda does not support");
    }
    return *first;
  }

  const GgufFile& file_;
  std::string prefix_;
};

Status read_sizes(const KeyReader& keys, ModelConfig& c) {
  PAGODA_ASSIGN_OR_RETURN(const int32_t num_layers, keys.integer("block_count", 1, kMaxLayers, std::nullopt));
  c.layers.resize(num_layers);
  PAGODA_ASSIGN_OR_RETURN(c.hidden_size, keys.integer("embedding_length", 1, kMaxWidth, std::nullopt));
  PAGODA_ASSIGN_OR_RETURN(c.ffn_size, keys.integer("feed_forward_length", 1, kMaxWidth, std::nullopt));
  PAGODA_ASSIGN_OR_RETURN(c.context_length, keys.integer("context_length", 1, kMaxContext, std::nullopt));
  PAGODA_ASSIGN_OR_RETURN(c.num_heads, keys.integer("attention.head_count", 1, kMaxHeads, std::nullopt));
  PAGODA_ASSIGN_OR_RETURN(c.num_kv_heads, keys.integer("attention.head_count_kv", 1, kMaxHeads, c.num_heads));
  if (c.num_heads % c.num_kv_heads != 0) {
    return keys.error("attention.head_count_kv", "= " + std::to_string(c.num_kv_heads) + " does not divide the " +
                                                     std::to_string(c.num_heads) + " query heads");
  }
  const auto default_dim = static_cast<uint64_t>(c.hidden_size / c.num_heads);
  PAGODA_ASSIGN_OR_RETURN(c.key_dim, keys.integer("attention.key_length", 1, kMaxHeadDim, default_dim));
  PAGODA_ASSIGN_OR_RETURN(c.value_dim, keys.integer("attention.value_length", 1, kMaxHeadDim, default_dim));
  for (const int32_t dim : {c.key_dim, c.value_dim}) {
    if (dim % 16 != 0) {
      return unimplemented("heads of " + std::to_string(dim) + " dimensions: Pagoda's attention needs a multiple of 16");
    }
  }
  return {};
}

Status read_rope(const GgufFile& file, const KeyReader& keys, ModelConfig& c) {
  PAGODA_ASSIGN_OR_RETURN(c.rope_dim, keys.integer("rope.dimension_count", 2, kMaxHeadDim, c.key_dim));
  if (c.rope_dim > c.key_dim || c.rope_dim % 2 != 0) {
    return keys.error("rope.dimension_count", "= " + std::to_string(c.rope_dim) + " must be even and at most the head's " +
                                                  std::to_string(c.key_dim) + " dimensions");
  }
  RopeConfig rope;
  PAGODA_ASSIGN_OR_RETURN(rope.base, keys.real("rope.freq_base", 1.0, 1e12, 10000.0));
  PAGODA_ASSIGN_OR_RETURN(const std::string scaling, keys.text("rope.scaling.type", "none"));
  PAGODA_ASSIGN_OR_RETURN(const double old_factor, keys.real("rope.scale_linear", 0.0, 1e6, 0.0));
  PAGODA_ASSIGN_OR_RETURN(const double factor, keys.real("rope.scaling.factor", 0.0, 1e6, old_factor));
  if (scaling == "linear" || (scaling == "none" && old_factor > 0.0)) {
    rope.scaling = RopeScalingKind::kLinear;
    rope.linear_factor = factor > 0.0 ? factor : 1.0;
  } else if (scaling != "none") {
    return unimplemented(file.path() + ": RoPE scaling \"" + scaling + "\" (Pagoda has none, linear and llama3)");
  }
  c.ropes.push_back(rope);
  return {};
}

Status read_vocab_size(const GgufFile& file, const KeyReader& keys, ModelConfig& c) {
  const GgufTensorInfo* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr || embedding->dims.size() != 2) {
    return data_loss(file.path() + ": tensor token_embd.weight is missing: a vocabulary-only file cannot be run");
  }
  const uint64_t rows = embedding->dims[1];
  if (rows == 0 || rows > kMaxVocab) return keys.error("vocab_size", "of " + std::to_string(rows) + " is out of range");
  PAGODA_ASSIGN_OR_RETURN(const GgufArray* tokens, file.get_array("tokenizer.ggml.tokens"));
  if (tokens != nullptr && tokens->size() != rows) {
    return data_loss(file.path() + ": token_embd.weight has " + std::to_string(rows) + " rows, tokenizer.ggml.tokens has " +
                     std::to_string(tokens->size()));
  }
  c.vocab_size = static_cast<int32_t>(rows);
  return {};
}

Status refuse_unsupported(const GgufFile& file, const std::string& architecture) {
  PAGODA_ASSIGN_OR_RETURN(const auto experts, file.get_uint(architecture + ".expert_count"));
  if (experts.value_or(0) > 0) {
    return unimplemented(file.path() + ": " + architecture + ".expert_count = " + std::to_string(*experts) +
                         ": mixture-of-experts models are not supported yet");
  }
  return {};
}

std::string known_architectures() {
  std::string names;
  for (const ArchitectureDescriptor* row : architectures()) names += (names.empty() ? "" : ", ") + std::string(row->name);
  return names;
}

}  // namespace

std::vector<KvGroup> kv_groups(const ModelConfig& config) {
  std::vector<KvGroup> groups;
  for (int32_t layer = 0; layer < config.num_layers(); ++layer) {
    const int32_t window = config.layers[layer].window;
    KvGroup* group = nullptr;
    for (KvGroup& g : groups) group = g.window == window ? &g : group;
    if (group == nullptr) group = &groups.emplace_back(KvGroup{window, {}});
    group->layers.push_back(layer);
  }
  return groups;
}

Result<ModelConfig> model_config_from_gguf(const GgufFile& file) {
  PAGODA_ASSIGN_OR_RETURN(const std::string* architecture, file.get_string("general.architecture"));
  if (architecture == nullptr) return data_loss(file.path() + ": general.architecture is missing");
  const ArchitectureDescriptor* descriptor = find_architecture(*architecture);
  if (descriptor == nullptr) {
    return unimplemented(file.path() + ": architecture \"" + *architecture + "\" (Pagoda runs " + known_architectures() + ")");
  }
  ModelConfig c;
  c.architecture = *architecture;
  PAGODA_ASSIGN_OR_RETURN(const std::string* name, file.get_string("general.name"));
  if (name != nullptr) c.name = *name;
  PAGODA_RETURN_IF_ERROR(refuse_unsupported(file, c.architecture));
  const KeyReader keys(file, c.architecture);
  PAGODA_RETURN_IF_ERROR(read_sizes(keys, c));
  PAGODA_RETURN_IF_ERROR(read_rope(file, keys, c));
  PAGODA_RETURN_IF_ERROR(read_vocab_size(file, keys, c));
  PAGODA_ASSIGN_OR_RETURN(const double eps, keys.real("attention.layer_norm_rms_epsilon", 0.0, 1.0, std::nullopt));
  PAGODA_ASSIGN_OR_RETURN(const double attention_cap, keys.real("attn_logit_softcapping", 0.0, 1e6, 0.0));
  PAGODA_ASSIGN_OR_RETURN(const double logit_cap, keys.real("final_logit_softcapping", 0.0, 1e6, 0.0));
  const double default_scale = 1.0 / std::sqrt(static_cast<double>(c.key_dim));
  PAGODA_ASSIGN_OR_RETURN(const double scale, keys.real("attention.scale", 0.0, 1e6, default_scale));
  c.norm_eps = static_cast<float>(eps);
  c.attention_soft_cap = static_cast<float>(attention_cap);
  c.logit_soft_cap = static_cast<float>(logit_cap);
  c.attention_scale = static_cast<float>(scale > 0.0 ? scale : default_scale);
  c.rope_layout = descriptor->rope_layout;
  c.activation = descriptor->activation;
  c.has_qk_norm = descriptor->has_qk_norm;
  c.has_post_norms = descriptor->has_post_norms;
  if (descriptor->scales_embedding) c.embedding_scale = std::sqrt(static_cast<float>(c.hidden_size));
  if (descriptor->finish != nullptr) PAGODA_RETURN_IF_ERROR(descriptor->finish(file, c));
  return c;
}

}  // namespace pagoda
