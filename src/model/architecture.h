#pragma once
// The architectures Pagoda runs: one descriptor each, listed in architectures/registry.cc. A descriptor states what a
// model file leaves unsaid; everything else is read from the file by model_config_from_gguf.

#include <span>
#include <string_view>

#include "model/model_config.h"

namespace pagoda {

struct ArchitectureDescriptor {
  std::string_view name;  ///< general.architecture
  RopeLayout rope_layout;
  Activation activation;
  bool has_qk_norm;
  bool has_post_norms;
  bool scales_embedding;  ///< embeddings times sqrt(hidden_size)
  /// Sets what depends on the file's other values (windows, second RoPE base, query scale), after the common keys.
  Status (*finish)(const GgufFile& file, ModelConfig& config);
};

std::span<const ArchitectureDescriptor* const> architectures();
const ArchitectureDescriptor* find_architecture(std::string_view name);

extern const ArchitectureDescriptor kLlamaArchitecture;
extern const ArchitectureDescriptor kQwen2Architecture;
extern const ArchitectureDescriptor kQwen3Architecture;
extern const ArchitectureDescriptor kGemma2Architecture;
extern const ArchitectureDescriptor kGemma3Architecture;

/// Every `period`-th layer sees everything, the others `window` tokens.
void set_window_pattern(ModelConfig& config, int32_t window, int32_t period);
/// attention.sliding_window of the file, or `fallback`; kDataLoss when out of range.
Result<int32_t> read_window(const GgufFile& file, const ModelConfig& config, int32_t fallback);

}  // namespace pagoda
