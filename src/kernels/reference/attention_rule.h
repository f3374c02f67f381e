#pragma once
// What every attention implementation shares besides the arithmetic: positions, windows, layouts of partials. C-clean.

#include "kernels/attention.h"

namespace pagoda {
namespace attention_rule {

/// The running maximum starts each split here: finite, so that 2^(m - m') never sees inf - inf.
constexpr float kLowest = -1e30f;
constexpr float kLog2e = 1.44269504f;
constexpr float kF16Max = 65504.0f;

/// Scores are in units of log2: queries carry the factor. With a soft-cap c the score is 2 log2e x / c, so that
/// tanh(x / c) = (1 - 2^-s) / (1 + 2^-s).
static inline float query_scale(const AttentionArgs& args) {
  if (args.soft_cap == 0.0f) return args.scale * kLog2e;
  return (args.scale * (2.0f * kLog2e)) / args.soft_cap;
}

/// First position that a row at `position` sees.
static inline int32_t window_begin(int32_t window, int32_t position) {
  return window > 0 && position + 1 > window ? position + 1 - window : 0;
}

static inline int32_t group_size(const AttentionArgs& args) {
  return args.num_heads / args.layout.num_kv_heads;
}

/// Slab of panel `panel_idx` (16 tokens) of the sequence for one KV head.
static inline const uint8_t* slab(const AttentionArgs& args, int32_t kv_head, int32_t panel_idx) {
  const KvLayout& l = args.layout;
  const int32_t panels = l.block_tokens / kKvPanelTokens;
  const size_t in_block = static_cast<size_t>(kv_head) * panels + panel_idx % panels;
  return args.blocks + static_cast<size_t>(args.block_table[panel_idx / panels]) * l.block_bytes() +
         in_block * l.slab_bytes();
}

static inline size_t key_bytes(const KvLayout& l) {
  return static_cast<size_t>(kKvPanelTokens) * l.key_dim * l.element_bytes();
}

/// A split partial: for n rows (position x head of the group, head fastest) maximum[n], sum[n], both padded to 16, then
/// values[n][value_dim].
static inline size_t padded16(size_t n) {
  return (n + 15) / 16 * 16;
}

static inline size_t partial_floats(const AttentionArgs& args, int32_t num_rows) {
  const size_t n = static_cast<size_t>(num_rows) * group_size(args);
  return 2 * padded16(n) + n * args.layout.value_dim;
}

static inline const float* query_row(const AttentionArgs& args, const AttentionItem& item, int32_t row_idx) {
  const int32_t group = group_size(args);
  const int32_t head = item.kv_head * group + row_idx % group;
  return args.q + static_cast<size_t>(item.row_begin + row_idx / group) * args.q_stride +
         static_cast<size_t>(head) * args.layout.key_dim;
}

static inline float* output_row(const AttentionArgs& args, const AttentionItem& item, int32_t row_idx) {
  const int32_t group = group_size(args);
  const int32_t head = item.kv_head * group + row_idx % group;
  return args.out + static_cast<size_t>(item.row_begin + row_idx / group) * args.out_stride +
         static_cast<size_t>(head) * args.layout.value_dim;
}

static inline int32_t row_position(const AttentionArgs& args, const AttentionItem& item, int32_t row_idx) {
  return args.first_position + item.row_begin + row_idx / group_size(args);
}

}  // namespace attention_rule
}  // namespace pagoda
