#pragma once
// Model: configuration and weights, packed for the kernels, constant after load; engines share one by shared_ptr.
//
// Thread rule: immutable; read from any thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/matmul.h"
#include "model/model_config.h"
#include "pagoda/status.h"

namespace pagoda {

class GgufFile;
class ThreadTeam;

/// Weights of one layer; views into Model's buffer. A null pointer or empty matrix: the model has none.
struct LayerWeights {
  const float* attention_norm = nullptr;       // [hidden]
  const float* post_attention_norm = nullptr;  // [hidden]
  const float* ffn_norm = nullptr;             // [hidden]
  const float* post_ffn_norm = nullptr;        // [hidden]
  const float* q_norm = nullptr;               // [key_dim]
  const float* k_norm = nullptr;               // [key_dim]
  PackedMatrix q, k, v;                        // [heads * dim, hidden]
  PackedMatrix attention_output;               // [hidden, heads * value_dim]
  PackedMatrix gate, up;                       // [ffn, hidden]
  PackedMatrix down;                           // [hidden, ffn]
  const float* q_bias = nullptr;
  const float* k_bias = nullptr;
  const float* v_bias = nullptr;
  const float* attention_output_bias = nullptr;
  const float* gate_bias = nullptr;
  const float* up_bias = nullptr;
  const float* down_bias = nullptr;
};

/// Called from the loading thread with bytes done and bytes in all; false cancels the load.
using LoadProgress = std::function<bool(uint64_t done, uint64_t total)>;

/// What loading `file` will take, from its tensor directory alone (for planning before the load).
Result<uint64_t> packed_weight_bytes(const GgufFile& file);

class Model {
 public:
  /// Reads every tensor straight into the kernels' layout, in parallel. Never holds two copies of the weights: besides
  /// them it needs a few MiB a thread.
  static Result<std::shared_ptr<const Model>> load(const GgufFile& file, ThreadTeam& team, const LoadProgress& progress);

  const ModelConfig& config() const { return config_; }
  std::span<const LayerWeights> layers() const { return layers_; }
  const PackedMatrix& token_embedding() const { return token_embedding_; }  ///< [vocab, hidden]
  const PackedMatrix& output() const { return output_; }  ///< [vocab, hidden]; the embedding itself when tied
  const float* output_norm() const { return output_norm_; }
  bool has_tied_embedding() const { return output_.data == token_embedding_.data; }
  /// Bytes of all packed weights, tied ones once.
  uint64_t packed_bytes() const { return buffer_.size(); }
  uint64_t num_parameters() const { return num_parameters_; }

 private:
  friend class WeightLoader;
  friend Result<uint64_t> packed_weight_bytes(const GgufFile& file);
  Model() = default;
  ModelConfig config_;
  AlignedBuffer buffer_;
  std::vector<LayerWeights> layers_;
  PackedMatrix token_embedding_, output_;
  const float* output_norm_ = nullptr;
  uint64_t num_parameters_ = 0;
};

}  // namespace pagoda
