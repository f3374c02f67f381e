#include "model/kv_store.h"

#include "base/check.h"

namespace pagoda {

KvLayout kv_layout(const ModelConfig& config, KvType type, int32_t block_tokens) {
  return {type, block_tokens, config.num_kv_heads, config.key_dim, config.value_dim};
}

uint64_t kv_bytes_per_token(const ModelConfig& config, KvType type) {
  const KvLayout layout = kv_layout(config, type, kKvPanelTokens);
  return layout.block_bytes() / kKvPanelTokens * static_cast<uint64_t>(config.num_layers());
}

Result<KvStore> KvStore::create(const ModelConfig& config, KvType type, int32_t block_tokens,
                                const std::vector<int32_t>& num_blocks) {
  KvStore store;
  store.layout_ = kv_layout(config, type, block_tokens);
  store.groups_ = kv_groups(config);
  PAGODA_CHECK(num_blocks.size() == store.groups_.size());
  store.group_of_layer_.resize(config.num_layers());
  store.pools_.resize(config.num_layers());
  for (size_t g = 0; g < store.groups_.size(); ++g) {
    for (const int32_t layer : store.groups_[g].layers) {
      store.group_of_layer_[layer] = static_cast<int32_t>(g);
      PAGODA_ASSIGN_OR_RETURN(store.pools_[layer],
                              AlignedBuffer::create(store.layout_.block_bytes() * static_cast<size_t>(num_blocks[g])));
    }
  }
  return store;
}

uint64_t KvStore::total_bytes() const {
  uint64_t total = 0;
  for (const AlignedBuffer& pool : pools_) total += pool.size();
  return total;
}

}  // namespace pagoda
