#include <cmath>

#include "formats/gguf/gguf_file.h"
#include "model/architecture.h"

namespace pagoda {

namespace {

constexpr int32_t kWindowPeriod = 6;
constexpr double kLocalRopeBase = 10000.0;  // config.json: rope_local_base_freq
constexpr int32_t kLayersOf27B = 62;        // 27B scales queries by hidden/heads (config.json: query_pre_attn_scalar 168)

// Windowed layers have their own RoPE base and none of the long-context scaling.
Status finish(const GgufFile& file, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const int32_t window, read_window(file, config, 0));
  if (window > 0) {
    set_window_pattern(config, window, kWindowPeriod);
    RopeConfig local;
    PAGODA_ASSIGN_OR_RETURN(const auto base, file.get_float(config.architecture + ".rope.freq_base_swa"));
    local.base = base.value_or(kLocalRopeBase);
    if (!(local.base > 1.0 && local.base < 1e12)) {
      return data_loss(file.path() + ": gemma3.rope.freq_base_swa = " + std::to_string(local.base) + " is out of range");
    }
    config.ropes.push_back(local);
    for (LayerConfig& layer : config.layers) layer.rope_idx = layer.window > 0 ? 1 : 0;
  }
  if (config.num_layers() == kLayersOf27B) {
    config.attention_scale = 1.0f / std::sqrt(static_cast<float>(config.hidden_size / config.num_heads));
  }
  return {};
}

}  // namespace

const ArchitectureDescriptor kGemma3Architecture = {
    .name = "gemma3",
    .rope_layout = RopeLayout::kHalves,
    .activation = Activation::kGeluTanh,
    .has_qk_norm = true,
    .has_post_norms = true,
    .scales_embedding = true,
    .finish = finish,
};

}  // namespace pagoda
