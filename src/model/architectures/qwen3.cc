#include "model/architecture.h"

namespace pagoda {

const ArchitectureDescriptor kQwen3Architecture = {
    .name = "qwen3",
    .rope_layout = RopeLayout::kHalves,
    .activation = Activation::kSilu,
    .has_qk_norm = true,
    .has_post_norms = false,
    .scales_embedding = false,
    .finish = nullptr,
};

}  // namespace pagoda
