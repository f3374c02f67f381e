#pragma once
// Decoder: the forward pass of any decoder-only model, built from its ModelConfig. One ragged batch of rows (tokens of
// many sequences, prefill chunks and single decode tokens alike, no padding) goes through all layers; logits are made
// only for rows that ask.
//
// Ownership: keeps the Model alive; the kernels, team and KV store are passed in and must outlive it. Buffers are sized at creation; a
// forward pass allocates nothing.
// Thread rule: engine thread only; uses the team inside.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/thread_team.h"
#include "kernels/kernel_table.h"
#include "model/kv_store.h"
#include "model/layers/attention.h"
#include "model/layers/linear.h"
#include "model/layers/rope_table.h"
#include "model/model.h"

namespace pagoda {

/// Consecutive rows of a step that belong to one sequence.
struct StepSequence {
  int32_t first_row = 0;
  int32_t num_rows = 0;
  int32_t first_position = 0;
  /// One table per KV group: block id of each block of the sequence (entries behind the window unused).
  const int32_t* const* block_tables = nullptr;
};

struct StepBatch {
  std::span<const int32_t> ids;              ///< [num_rows]
  std::span<const StepSequence> sequences;   ///< cover all rows, in order
};

struct DecoderLimits {
  int32_t max_rows = 0;         ///< tokens of one step
  int32_t max_sequences = 0;
  int32_t max_context = 0;
  int32_t max_logit_rows = 0;   ///< rows of one compute_logits call
};

class Decoder {
 public:
  static Result<std::unique_ptr<Decoder>> create(std::shared_ptr<const Model> model, const DecoderLimits& limits,
                                                 const KvLayout& kv_layout, AttentionKind attention,
                                                 const KernelTable& kernels, ThreadTeam& team);
  /// Bytes that create allocates for these limits.
  static uint64_t buffer_bytes(const ModelConfig& config, const DecoderLimits& limits, const KvLayout& kv_layout,
                               const KernelTable& kernels, int num_threads);

  /// Computes all rows: writes their K and V into the store and leaves their final hidden states for compute_logits.
  void forward(const StepBatch& batch, KvStore& kv);
  /// Logits of some rows of the last forward pass: row i at logits() + i * vocab_size. At most max_logit_rows.
  void compute_logits(std::span<const int32_t> rows);
  const float* logits() const { return logits_; }
  const DecoderLimits& limits() const { return limits_; }

 private:
  Decoder(std::shared_ptr<const Model> model, const DecoderLimits& limits, const KernelTable& kernels, ThreadTeam& team,
          LinearRunner linear, AttentionRunner attention);

  void embed(std::span<const int32_t> ids);
  void attention_block(const LayerWeights& w, int32_t layer, const StepBatch& batch, KvStore& kv);
  void rotate_and_store(const LayerWeights& w, int32_t layer, const StepBatch& batch, KvStore& kv);
  void ffn_block(const LayerWeights& w);
  void project_residual(const float* x, int32_t k, const PackedMatrix& weights, const float* bias, const float* post_norm);
  void norm_rows(const float* x, const float* weight, int32_t num_rows, float* out);
  template <typename Fn>
  void for_rows(int32_t num_rows, Fn&& fn);

  std::shared_ptr<const Model> model_;
  const ModelConfig& config_;
  const DecoderLimits limits_;
  const KernelTable& kernels_;
  ThreadTeam& team_;
  LinearRunner linear_;
  AttentionRunner attention_;
  RopeTable rope_;
  AlignedBuffer buffer_;
  std::vector<int32_t> positions_;            // by row
  std::vector<AttentionArgs> attention_args_;
  int32_t num_rows_ = 0;

  // Views into buffer_, [max_rows, width] each.
  float* hidden_ = nullptr;     // residual stream
  float* normed_ = nullptr;     // input of a block; also its output before a post norm
  float* q_ = nullptr;
  float* k_ = nullptr;
  float* v_ = nullptr;
  float* mixed_ = nullptr;      // attention output, per head
  float* gate_ = nullptr;
  float* up_ = nullptr;
  float* logit_rows_ = nullptr; // [max_logit_rows, hidden]
  float* logits_ = nullptr;     // [max_logit_rows, vocab]
};

}  // namespace pagoda
