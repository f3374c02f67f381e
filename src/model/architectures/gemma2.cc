#include <cmath>

#include "formats/gguf/gguf_file.h"
#include "model/architecture.h"

namespace pagoda {

namespace {

constexpr int32_t kDefaultWindow = 4096;  // files written before the key existed (gemma-2 config.json: sliding_window)
constexpr int32_t kWindowPeriod = 2;
constexpr int32_t kLayersOf27B = 46;      // the 27B model scales queries by hidden/heads (config.json: query_pre_attn_scalar 144)

Status finish(const GgufFile& file, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const int32_t window, read_window(file, config, kDefaultWindow));
  set_window_pattern(config, window, kWindowPeriod);
  if (config.num_layers() == kLayersOf27B) {
    config.attention_scale = 1.0f / std::sqrt(static_cast<float>(config.hidden_size / config.num_heads));
  }
  return {};
}

}  // namespace

const ArchitectureDescriptor kGemma2Architecture = {
    .name = "gemma2",
    .rope_layout = RopeLayout::kHalves,
    .activation = Activation::kGeluTanh,
    .has_qk_norm = false,
    .has_post_norms = true,
    .scales_embedding = true,
    .finish = finish,
};

}  // namespace pagoda
