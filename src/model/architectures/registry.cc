#include "formats/gguf/gguf_file.h"
#include "model/architecture.h"

namespace pagoda {

std::span<const ArchitectureDescriptor* const> architectures() {
  static constexpr const ArchitectureDescriptor* kRows[] = {
      &kLlamaArchitecture, &kQwen2Architecture, &kQwen3Architecture, &kGemma2Architecture, &kGemma3Architecture,
  };
  return kRows;
}

const ArchitectureDescriptor* find_architecture(std::string_view name) {
  for (const ArchitectureDescriptor* row : architectures()) {
    if (row->name == name) return row;
  }
  return nullptr;
}

void set_window_pattern(ModelConfig& config, int32_t window, int32_t period) {
  for (int32_t i = 0; i < config.num_layers(); ++i) {
    config.layers[i].window = i % period < period - 1 ? window : 0;
  }
}

Result<int32_t> read_window(const GgufFile& file, const ModelConfig& config, int32_t fallback) {
  const std::string key = config.architecture + ".attention.sliding_window";
  PAGODA_ASSIGN_OR_RETURN(const auto value, file.get_uint(key));
  const uint64_t window = value.value_or(static_cast<uint64_t>(fallback));
  if (window > (uint64_t{1} << 30)) return data_loss(file.path() + ": " + key + " = " + std::to_string(window) + " is out of range");
  return static_cast<int32_t>(window);
}

}  // namespace pagoda
