#include "formats/gguf/gguf_file.h"
#include "model/architecture.h"

namespace pagoda {

namespace {

// Llama 3.1 and later store the divisors of their RoPE frequencies as a tensor; its presence is the only mark.
Status finish(const GgufFile& file, ModelConfig& config) {
  const GgufTensorInfo* divisors = file.find_tensor("rope_freqs.weight");
  if (divisors == nullptr) return {};
  if (divisors->dtype != DType::kF32 || divisors->num_elements() != static_cast<uint64_t>(config.rope_dim / 2)) {
    return data_loss(file.path() + ": tensor rope_freqs.weight must hold " + std::to_string(config.rope_dim / 2) + " F32 values");
  }
  RopeConfig& rope = config.ropes[0];
  rope.scaling = RopeScalingKind::kLlama3;
  rope.frequency_divisors.resize(config.rope_dim / 2);
  PAGODA_RETURN_IF_ERROR(file.read_tensor(
      *divisors, 0, {reinterpret_cast<uint8_t*>(rope.frequency_divisors.data()), rope.frequency_divisors.size() * 4}));
  for (const float f : rope.frequency_divisors) {
    if (!(f > 0.0f && f < 1e30f)) return data_loss(file.path() + ": tensor rope_freqs.weight holds a value that is not positive");
  }
  return {};
}

}  // namespace

// GGUF stores llama's Q and K rows permuted, so that adjacent dimensions rotate together.
const ArchitectureDescriptor kLlamaArchitecture = {
    .name = "llama",
    .rope_layout = RopeLayout::kAdjacent,
    .activation = Activation::kSilu,
    .has_qk_norm = false,
    .has_post_norms = false,
    .scales_embedding = false,
    .finish = finish,
};

}  // namespace pagoda
