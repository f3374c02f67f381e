#pragma once
// Geometry of the paged KV cache as the book-keeping sees it: groups of layers, block sizes, pool sizes. No tensors.

#include <cstdint>
#include <vector>

namespace pagoda {

/// Layers with equal window (and head geometry) share block tables: one group, one pool.
struct KvGroupConfig {
  int32_t window = 0;      ///< tokens a row sees, itself included; 0: all
  int32_t num_blocks = 0;  ///< pool size
};

struct KvConfig {
  int32_t block_tokens = 16;
  std::vector<KvGroupConfig> groups;
};

}  // namespace pagoda
