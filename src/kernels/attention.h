#pragma once
// Paged flash attention: layouts, arguments and the rule that fixes its bits. C-clean.
//
// KV blocks: a block of `block_tokens` (a multiple of 16) tokens of one layer holds all KV heads, head-major, in panels
// of 16 tokens: slab(block, head, panel) = K part, then V part. Within a slab: BF16 K[(d/2*16 + t)*2 + (d&1)],
// V[((t/2)*D + d)*2 + (t&1)]; F16 and F32 K[d*16 + t], V[t*D + d].
// The rule (tile of 64 tokens, split of 256, both at absolute positions; base-2 online softmax; split partials folded
// in order) is written down as code in kernels/reference/attention.cc; every implementation equals it bit for bit.
// After Dao et al., FlashAttention (2022) and Flash-Decoding (2023); paging after Kwon et al. (2023).
//
// Attention that sees nothing gives 0. NaN in a query gives NaN in its own outputs only. K and V must be finite: F16 is
// clamped on writing.
//
// Thread rule: pure functions over disjoint outputs. FTZ and DAZ must be on.

#include <stddef.h>
#include <stdint.h>

namespace pagoda {

enum class KvType : uint8_t { kF16, kBF16, kF32 };

inline constexpr int kKvPanelTokens = 16;
inline constexpr int kAttentionTile = 64;
inline constexpr int kAttentionSplit = 256;

struct KvLayout {
  KvType type = KvType::kF16;
  int32_t block_tokens = 16;
  int32_t num_kv_heads = 0;
  int32_t key_dim = 0;    ///< a multiple of 16
  int32_t value_dim = 0;  ///< a multiple of 16

  size_t element_bytes() const { return type == KvType::kF32 ? 4 : 2; }
  size_t slab_bytes() const { return static_cast<size_t>(kKvPanelTokens) * (key_dim + value_dim) * element_bytes(); }
  size_t block_bytes() const { return slab_bytes() * num_kv_heads * (block_tokens / kKvPanelTokens); }
};

/// One layer's attention for consecutive rows of one sequence. Row r stands at position first_position + r and sees
/// positions [max(0, p - window + 1), p] (window 0: [0, p]).
struct AttentionArgs {
  KvLayout layout;
  const uint8_t* blocks = nullptr;       ///< this layer's pool: block b at blocks + b * layout.block_bytes()
  const int32_t* block_table = nullptr;  ///< block id of each block of the sequence; entries behind the window unused
  int32_t num_heads = 0;                 ///< query heads, a multiple of num_kv_heads
  float scale = 0.0f;                    ///< multiplies q.k (1/sqrt(D) or the model's own)
  float soft_cap = 0.0f;                 ///< 0: none
  int32_t window = 0;                    ///< 0: none
  int32_t first_position = 0;
  int32_t num_rows = 0;
  const float* q = nullptr;  ///< row r, head h at q + r*q_stride + h*key_dim
  size_t q_stride = 0;
  float* out = nullptr;  ///< row r, head h at out + r*out_stride + h*value_dim
  size_t out_stride = 0;
};

/// Part of the work of one AttentionArgs: rows [row_begin, row_end) for the query heads of one KV head.
struct AttentionItem {
  int32_t kv_head = 0;
  int32_t row_begin = 0;
  int32_t row_end = 0;
};

struct AttentionKernels {
  /// Writes one token's K and V (all KV heads, [num_kv_heads * key_dim] and [num_kv_heads * value_dim]) into `block` at
  /// `slot` (0..block_tokens-1). Slot 0 of each panel zeroes the panel first, so stale bytes never reach an output.
  /// F16 values are clamped to +-65504.
  void (*append)(const KvLayout& layout, uint8_t* block, int32_t slot, const float* k, const float* v);
  /// Scratch bytes that attend needs for an item of `max_rows` rows.
  size_t (*scratch_bytes)(const AttentionArgs& args, int32_t max_rows);
  /// All splits of the item, in order, into args.out.
  void (*attend)(const AttentionArgs& args, const AttentionItem& item, uint8_t* scratch);
  /// Floats of one split partial of an item with `num_rows` rows; a multiple of 16.
  size_t (*partial_floats)(const AttentionArgs& args, int32_t num_rows);
  /// Split `split_idx` (positions [256*i, 256*(i+1))) of the item into `partial`
  /// (64-byte aligned).
  void (*attend_split)(const AttentionArgs& args, const AttentionItem& item, int32_t split_idx, uint8_t* scratch,
                       float* partial);
  /// Folds partials of splits [first_split, first_split + num_splits), in order, into args.out.
  void (*fold_splits)(const AttentionArgs& args, const AttentionItem& item, const float* partials, int32_t num_splits);
  /// Scratch bytes of attend_naive for positions below `max_context`.
  size_t (*naive_scratch_bytes)(const AttentionArgs& args, int32_t max_context);
  /// The baseline: row by row, head by head, the whole score row in memory, then softmax, then the weighted sum. It is
  /// the same rule with one tile and one split as long as the row, so its results differ from attend's in rounding.
  void (*attend_naive)(const AttentionArgs& args, const AttentionItem& item, uint8_t* scratch);
};

}  // namespace pagoda
