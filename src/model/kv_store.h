#pragma once
// KvStore: the tensors behind kv/'s block ids. Each layer has a pool of its group's number of blocks; the layout inside
// a block belongs to the attention kernel (kernels/attention.h).
//
// Thread rule: memory owned here, written by attention's append during a step; no locking.

#include <cstdint>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/attention.h"
#include "model/model_config.h"

namespace pagoda {

class KvStore {
 public:
  /// `num_blocks[g]` blocks for each layer of group g of kv_groups(config). Pages become resident when first written.
  static Result<KvStore> create(const ModelConfig& config, KvType type, int32_t block_tokens,
                                const std::vector<int32_t>& num_blocks);

  const KvLayout& layout() const { return layout_; }
  uint8_t* layer_blocks(int32_t layer) { return pools_[layer].data(); }
  const std::vector<KvGroup>& groups() const { return groups_; }
  int32_t group_of_layer(int32_t layer) const { return group_of_layer_[layer]; }
  uint64_t total_bytes() const;

 private:
  KvLayout layout_;
  std::vector<KvGroup> groups_;
  std::vector<int32_t> group_of_layer_;
  std::vector<AlignedBuffer> pools_;  // by layer
};

KvLayout kv_layout(const ModelConfig& config, KvType type, int32_t block_tokens);
/// Bytes of one token's K and V over all layers (the number that planners quote).
uint64_t kv_bytes_per_token(const ModelConfig& config, KvType type);

}  // namespace pagoda
