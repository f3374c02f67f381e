#include "model/architecture.h"

namespace pagoda {

// Q, K and V have biases (read where the file has them).
const ArchitectureDescriptor kQwen2Architecture = {
    .name = "qwen2",
    .rope_layout = RopeLayout::kHalves,
    .activation = Activation::kSilu,
    .has_qk_norm = false,
    .has_post_norms = false,
    .scales_embedding = false,
    .finish = nullptr,
};

}  // namespace pagoda
