#include "model/decoder.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"
#include "kernels/packing.h"

namespace pagoda {

namespace {

// Row-wise work of fewer rows than this stays on the calling thread.
constexpr int32_t kRowsPerItem = 8;

struct BufferSizes {
  size_t hidden, q, k, v, mixed, ffn, logit_rows, logits;
  size_t total() const { return 2 * hidden + q + k + v + mixed + 2 * ffn + logit_rows + logits; }
};

BufferSizes buffer_sizes(const ModelConfig& c, const DecoderLimits& limits) {
  const auto floats = [](int64_t rows, int64_t width) {
    return round_up<size_t>(static_cast<size_t>(rows * width) * sizeof(float), AlignedBuffer::kAlignment);
  };
  const int64_t rows = limits.max_rows;
  return {.hidden = floats(rows, c.hidden_size),
          .q = floats(rows, int64_t{c.num_heads} * c.key_dim),
          .k = floats(rows, int64_t{c.num_kv_heads} * c.key_dim),
          .v = floats(rows, int64_t{c.num_kv_heads} * c.value_dim),
          .mixed = floats(rows, int64_t{c.num_heads} * c.value_dim),
          .ffn = floats(rows, c.ffn_size),
          .logit_rows = floats(limits.max_logit_rows, c.hidden_size),
          .logits = floats(limits.max_logit_rows, c.vocab_size)};
}

int32_t widest_input(const ModelConfig& c) {
  return std::max({c.hidden_size, c.ffn_size, c.num_heads * c.value_dim});
}

AttentionLimits attention_limits(const ModelConfig& c, const DecoderLimits& limits) {
  return {.max_rows = limits.max_rows,
          .max_sequences = limits.max_sequences,
          .max_context = limits.max_context,
          .num_heads = c.num_heads};
}

}  // namespace

uint64_t Decoder::buffer_bytes(const ModelConfig& config, const DecoderLimits& limits, const KvLayout& layout,
                               const KernelTable& kernels, int num_threads) {
  const int32_t linear_rows = std::max(limits.max_rows, limits.max_logit_rows);
  const uint64_t rope = config.ropes.size() * static_cast<uint64_t>(limits.max_rows) * config.rope_dim * sizeof(float);
  return buffer_sizes(config, limits).total() + rope +
         LinearRunner::buffer_bytes(*kernels.matmul, linear_rows, widest_input(config)) +
         AttentionRunner::buffer_bytes(*kernels.attention, layout, attention_limits(config, limits), num_threads);
}

Result<std::unique_ptr<Decoder>> Decoder::create(std::shared_ptr<const Model> model, const DecoderLimits& limits,
                                                 const KvLayout& layout, AttentionKind kind, const KernelTable& kernels,
                                                 ThreadTeam& team) {
  const ModelConfig& c = model->config();
  const int32_t linear_rows = std::max(limits.max_rows, limits.max_logit_rows);
  PAGODA_ASSIGN_OR_RETURN(LinearRunner linear, LinearRunner::create(*kernels.matmul, team, linear_rows, widest_input(c)));
  PAGODA_ASSIGN_OR_RETURN(AttentionRunner attention,
                          AttentionRunner::create(*kernels.attention, team, kind, layout, attention_limits(c, limits)));
  const BufferSizes sizes = buffer_sizes(c, limits);
  PAGODA_ASSIGN_OR_RETURN(AlignedBuffer buffer, AlignedBuffer::create(sizes.total()));
  std::unique_ptr<Decoder> d(new Decoder(std::move(model), limits, kernels, team, std::move(linear), std::move(attention)));
  d->buffer_ = std::move(buffer);
  uint8_t* next = d->buffer_.data();
  const auto take = [&next](size_t bytes) {
    auto* p = reinterpret_cast<float*>(next);
    next += bytes;
    return p;
  };
  d->hidden_ = take(sizes.hidden);
  d->normed_ = take(sizes.hidden);
  d->q_ = take(sizes.q);
  d->k_ = take(sizes.k);
  d->v_ = take(sizes.v);
  d->mixed_ = take(sizes.mixed);
  d->gate_ = take(sizes.ffn);
  d->up_ = take(sizes.ffn);
  d->logit_rows_ = take(sizes.logit_rows);
  d->logits_ = take(sizes.logits);
  return d;
}

Decoder::Decoder(std::shared_ptr<const Model> model, const DecoderLimits& limits, const KernelTable& kernels,
                 ThreadTeam& team, LinearRunner linear, AttentionRunner attention)
    : model_(std::move(model)),
      config_(model_->config()),
      limits_(limits),
      kernels_(kernels),
      team_(team),
      linear_(std::move(linear)),
      attention_(std::move(attention)),
      rope_(config_, limits.max_rows),
      positions_(limits.max_rows) {
  attention_args_.reserve(limits.max_sequences);
}

template <typename Fn>
void Decoder::for_rows(int32_t num_rows, Fn&& fn) {
  team_.parallel_for(num_rows, kRowsPerItem, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) fn(static_cast<int32_t>(row));
  });
}

void Decoder::embed(std::span<const int32_t> ids) {
  const int32_t width = config_.hidden_size;
  for_rows(num_rows_, [&](int32_t row) {
    float* out = hidden_ + static_cast<size_t>(row) * width;
    unpack_row(model_->token_embedding(), ids[row], out);
    if (config_.embedding_scale != 1.0f) kernels_.vector->scale(out, config_.embedding_scale, width);
  });
}

void Decoder::norm_rows(const float* x, const float* weight, int32_t num_rows, float* out) {
  const auto width = static_cast<size_t>(config_.hidden_size);
  for_rows(num_rows, [&](int32_t row) {
    kernels_.vector->rms_norm(x + row * width, weight, config_.norm_eps, config_.hidden_size, out + row * width);
  });
}

void Decoder::rotate_and_store(const LayerWeights& w, int32_t layer, const StepBatch& batch, KvStore& kv) {
  const ModelConfig& c = config_;
  const KvLayout& layout = kv.layout();
  const int32_t group = kv.group_of_layer(layer);
  uint8_t* blocks = kv.layer_blocks(layer);
  const auto norm_heads = [&](float* x, const float* weight, int32_t heads) {
    if (weight == nullptr) return;
    for (int32_t h = 0; h < heads; ++h) {
      kernels_.vector->rms_norm(x + h * c.key_dim, weight, c.norm_eps, c.key_dim, x + h * c.key_dim);
    }
  };
  for_rows(num_rows_, [&](int32_t row) {
    float* q = q_ + static_cast<size_t>(row) * c.num_heads * c.key_dim;
    float* k = k_ + static_cast<size_t>(row) * c.num_kv_heads * c.key_dim;
    norm_heads(q, w.q_norm, c.num_heads);
    norm_heads(k, w.k_norm, c.num_kv_heads);
    const float* cos_sin = rope_.row(c.layers[layer].rope_idx, row);
    kernels_.vector->rope(q, cos_sin, c.rope_layout, c.num_heads, c.key_dim, c.rope_dim);
    kernels_.vector->rope(k, cos_sin, c.rope_layout, c.num_kv_heads, c.key_dim, c.rope_dim);
  });
  // The first slot of a panel zeroes the panel, so one thread writes a sequence's rows in order.
  team_.parallel_for(static_cast<int64_t>(batch.sequences.size()), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t s = begin; s < end; ++s) {
      const StepSequence& sequence = batch.sequences[s];
      for (int32_t i = 0; i < sequence.num_rows; ++i) {
        const int32_t position = sequence.first_position + i;
        const auto row = static_cast<size_t>(sequence.first_row + i);
        const int32_t block = sequence.block_tables[group][position / layout.block_tokens];
        kernels_.attention->append(layout, blocks + static_cast<size_t>(block) * layout.block_bytes(),
                                   position % layout.block_tokens, k_ + row * c.num_kv_heads * c.key_dim,
                                   v_ + row * c.num_kv_heads * c.value_dim);
      }
    }
  });
}

void Decoder::attention_block(const LayerWeights& w, int32_t layer, const StepBatch& batch, KvStore& kv) {
  const ModelConfig& c = config_;
  const auto q_width = static_cast<size_t>(c.num_heads) * c.key_dim;
  const auto k_width = static_cast<size_t>(c.num_kv_heads) * c.key_dim;
  const auto v_width = static_cast<size_t>(c.num_kv_heads) * c.value_dim;
  const auto mixed_width = static_cast<size_t>(c.num_heads) * c.value_dim;
  norm_rows(hidden_, w.attention_norm, num_rows_, normed_);
  const LinearJob jobs[] = {{&w.q, w.q_bias, q_, q_width}, {&w.k, w.k_bias, k_, k_width}, {&w.v, w.v_bias, v_, v_width}};
  linear_.run(normed_, c.hidden_size, num_rows_, c.hidden_size, jobs, 1);
  rotate_and_store(w, layer, batch, kv);

  attention_args_.clear();
  for (const StepSequence& s : batch.sequences) {
    AttentionArgs args;
    args.layout = kv.layout();
    args.blocks = kv.layer_blocks(layer);
    args.block_table = s.block_tables[kv.group_of_layer(layer)];
    args.num_heads = c.num_heads;
    args.scale = c.attention_scale;
    args.soft_cap = c.attention_soft_cap;
    args.window = c.layers[layer].window;
    args.first_position = s.first_position;
    args.num_rows = s.num_rows;
    args.q = q_ + s.first_row * q_width;
    args.q_stride = q_width;
    args.out = mixed_ + s.first_row * mixed_width;
    args.out_stride = mixed_width;
    attention_args_.push_back(args);
  }
  attention_.run(attention_args_);
  project_residual(mixed_, static_cast<int32_t>(mixed_width), w.attention_output, w.attention_output_bias,
                   w.post_attention_norm);
}

// hidden += W x, or hidden += norm(W x) where the model has post norms.
void Decoder::project_residual(const float* x, int32_t k, const PackedMatrix& weights, const float* bias,
                               const float* post_norm) {
  const auto width = static_cast<size_t>(config_.hidden_size);
  if (post_norm == nullptr) {
    const LinearJob job{&weights, bias, hidden_, width, MatmulStore::kAdd};
    linear_.run(x, k, num_rows_, k, {&job, 1}, kReducedSegments);
    return;
  }
  const LinearJob job{&weights, bias, normed_, width};
  linear_.run(x, k, num_rows_, k, {&job, 1}, kReducedSegments);
  for_rows(num_rows_, [&](int32_t row) {
    float* y = normed_ + row * width;
    float* h = hidden_ + row * width;
    kernels_.vector->rms_norm(y, post_norm, config_.norm_eps, config_.hidden_size, y);
    kernels_.vector->add(h, y, config_.hidden_size, h);
  });
}

void Decoder::ffn_block(const LayerWeights& w) {
  const ModelConfig& c = config_;
  const auto width = static_cast<size_t>(c.ffn_size);
  norm_rows(hidden_, w.ffn_norm, num_rows_, normed_);
  const LinearJob jobs[] = {{&w.gate, w.gate_bias, gate_, width}, {&w.up, w.up_bias, up_, width}};
  linear_.run(normed_, c.hidden_size, num_rows_, c.hidden_size, jobs, 1);
  const auto activate = c.activation == Activation::kSilu ? kernels_.vector->silu_mul : kernels_.vector->gelu_tanh_mul;
  for_rows(num_rows_, [&](int32_t row) {
    float* gate = gate_ + row * width;
    activate(gate, up_ + row * width, c.ffn_size, gate);
  });
  project_residual(gate_, c.ffn_size, w.down, w.down_bias, w.post_ffn_norm);
}

void Decoder::forward(const StepBatch& batch, KvStore& kv) {
  num_rows_ = static_cast<int32_t>(batch.ids.size());
  PAGODA_CHECK(num_rows_ <= limits_.max_rows && batch.sequences.size() <= static_cast<size_t>(limits_.max_sequences));
  for (const StepSequence& s : batch.sequences) {
    for (int32_t i = 0; i < s.num_rows; ++i) positions_[s.first_row + i] = s.first_position + i;
  }
  rope_.fill({positions_.data(), batch.ids.size()}, team_);
  embed(batch.ids);
  for (int32_t layer = 0; layer < config_.num_layers(); ++layer) {
    const LayerWeights& w = model_->layers()[layer];
    attention_block(w, layer, batch, kv);
    ffn_block(w);
  }
}

void Decoder::compute_logits(std::span<const int32_t> rows) {
  PAGODA_CHECK(rows.size() <= static_cast<size_t>(limits_.max_logit_rows));
  const auto num_rows = static_cast<int32_t>(rows.size());
  const auto width = static_cast<size_t>(config_.hidden_size);
  const auto vocab = static_cast<size_t>(config_.vocab_size);
  for_rows(num_rows, [&](int32_t i) {
    kernels_.vector->rms_norm(hidden_ + rows[i] * width, model_->output_norm(), config_.norm_eps, config_.hidden_size,
                              logit_rows_ + i * width);
  });
  const LinearJob job{&model_->output(), nullptr, logits_, vocab};
  linear_.run(logit_rows_, width, num_rows, config_.hidden_size, {&job, 1}, 1);
  if (config_.logit_soft_cap > 0.0f) {
    constexpr int64_t kColumns = 16384;  // a multiple of the 16-lane groups; soft_cap is element-wise
    const int64_t pieces = ceil_div<int64_t>(config_.vocab_size, kColumns);
    team_.parallel_for(num_rows * pieces, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = i % pieces * kColumns;
        const auto count = static_cast<int32_t>(std::min<int64_t>(kColumns, config_.vocab_size - column));
        kernels_.vector->soft_cap(logits_ + (i / pieces) * vocab + column, config_.logit_soft_cap, count);
      }
    });
  }
}

}  // namespace pagoda
