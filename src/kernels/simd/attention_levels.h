#pragma once
// The cache writer, the naive form and the choice of the cache type: what turns attention.h into a kernel table.
// Included only by files of one instruction set; internal linkage throughout.

#include "kernels/simd/attention.h"

namespace pagoda {
namespace {

template <class V>
PAGODA_INLINE V clamped_f16(V x) {  // the operand order keeps NaN
  return V::min(V::set(rule::kF16Max), V::max(V::set(-rule::kF16Max), x));
}

template <KvType type>
struct StoredElement {
  using Type = uint16_t;
};
template <>
struct StoredElement<KvType::kF32> {
  using Type = float;
};

/// Stores sixteen values: pairs `pair_stride` elements apart, the second of a pair `stride` after the first.
template <class V, KvType type, class T>
PAGODA_INLINE void scatter(V x, T* out, size_t pair_stride, size_t stride) {
  alignas(64) T t[kLanes];
  if constexpr (type == KvType::kF32) x.store(t);
  if constexpr (type == KvType::kF16) clamped_f16(x).store_f16(t);
  if constexpr (type == KvType::kBF16) x.round_bf16().store_high16(t);
  PAGODA_UNROLL
  for (int j = 0; j < kLanes; j += 2) {
    out[j / 2 * pair_stride] = t[j];
    out[j / 2 * pair_stride + stride] = t[j + 1];
  }
}

template <class L, KvType type>
void append_token(const KvLayout& layout, uint8_t* block, int32_t slot, const float* k, const float* v) {
  using V = typename L::Vec;
  using T = typename StoredElement<type>::Type;
  const int32_t panels = layout.block_tokens / kKvPanelTokens;
  const int32_t token = slot % kKvPanelTokens;
  const size_t slab_bytes = layout.slab_bytes();
  for (int32_t h = 0; h < layout.num_kv_heads; ++h) {
    uint8_t* slab = block + (static_cast<size_t>(h) * panels + slot / kKvPanelTokens) * slab_bytes;
    if (token == 0) memset(slab, 0, slab_bytes);
    T* keys = reinterpret_cast<T*>(slab);
    T* values = reinterpret_cast<T*>(slab + rule::key_bytes(layout));
    const float* k_head = k + static_cast<size_t>(h) * layout.key_dim;
    const float* v_head = v + static_cast<size_t>(h) * layout.value_dim;
    for (int32_t d = 0; d < layout.key_dim; d += kLanes) {
      const V x = V::load(k_head + d);
      if constexpr (kIsBf16<type>)
        scatter<V, type>(x, keys + (d / 2 * kKvPanelTokens + token) * 2, 2 * kKvPanelTokens, 1);
      if constexpr (!kIsBf16<type>)
        scatter<V, type>(x, keys + d * kKvPanelTokens + token, 2 * kKvPanelTokens, kKvPanelTokens);
    }
    for (int32_t d = 0; d < layout.value_dim; d += kLanes) {
      const V x = V::load(v_head + d);
      if constexpr (kIsBf16<type>) {
        scatter<V, type>(x, values + (static_cast<size_t>(token / 2) * layout.value_dim + d) * 2 + (token & 1), 4, 2);
      } else {
        scatter<V, type>(x, values + static_cast<size_t>(token) * layout.value_dim + d, 2, 1);
      }
    }
  }
}

inline int32_t naive_tokens(int32_t context) {
  return (context + kAttentionTile - 1) / kAttentionTile * kAttentionTile;
}

inline size_t naive_bytes(const AttentionArgs& args, int32_t max_context) {
  return (static_cast<size_t>(args.layout.key_dim) + naive_tokens(max_context)) * sizeof(float);
}

template <class L, KvType type>
void naive_row(const AttentionArgs& args, const AttentionItem& item, int32_t row_idx, uint8_t* scratch) {
  using V = typename L::Vec;
  const KvLayout& layout = args.layout;
  const int32_t position = rule::row_position(args, item, row_idx);
  const int32_t first = rule::window_begin(args.window, position);
  const int32_t panel_begin = first / kKvPanelTokens;
  const int32_t panel_end = position / kKvPanelTokens + 1;
  const int32_t n = naive_tokens(position + 1);
  auto* query = reinterpret_cast<uint32_t*>(scratch);
  float* scores = reinterpret_cast<float*>(scratch) + layout.key_dim;
  pack_query<L, type>(rule::query_row(args, item, row_idx), rule::query_scale(args), layout.key_dim, query);

  V most = V::set(rule::kLowest);
  for (int32_t p = 0; p < n / kKvPanelTokens; ++p) {
    V s[1][1] = {{V::set(-f32::infinity())}};
    if (p >= panel_begin && p < panel_end) {
      s[0][0] = V::zero();
      const uint8_t* const columns[1] = {rule::slab(args, item.kv_head, p)};
      accumulate<L, type, 1, 1, Prefetch::kNone>(s, query, 0, columns, row_bytes_of<type>(kKvPanelTokens),
                                                 layout.key_dim, columns);
      if (args.soft_cap != 0.0f) s[0][0] = soft_capped(s[0][0], args.soft_cap * rule::kLog2e);
      s[0][0] = masked_lanes(s[0][0], first - p * kKvPanelTokens, position + 1 - p * kKvPanelTokens);
    }
    s[0][0].store(scores + p * kKvPanelTokens);
    most = V::max(most, s[0][0]);
  }
  const float maximum = most.tree_max();
  const float sum = exponentials<L, type>(scores, n, maximum, V::zero()).tree_sum();

  float* out = rule::output_row(args, item, row_idx);
  const auto* weights = reinterpret_cast<const uint32_t*>(scores);
  const V inverse = V::set(sum == 0.0f ? 0.0f : 1.0f / sum);
  for (int32_t d = 0; d < layout.value_dim; d += kLanes) {
    V acc[1][1] = {{V::zero()}};
    for (int32_t p = panel_begin; p < panel_end; ++p) {
      const uint8_t* slab = rule::slab(args, item.kv_head, p);
      const uint8_t* const columns[1] = {slab + rule::key_bytes(layout) + row_bytes_of<type>(d)};
      accumulate<L, type, 1, 1, Prefetch::kNone>(acc, weights + words<L, type>(p * kKvPanelTokens), 0, columns,
                                                 row_bytes_of<type>(layout.value_dim), kKvPanelTokens, columns);
    }
    (acc[0][0] * inverse + V::zero()).store(out + d);
  }
}

template <class L, KvType type>
void naive(const AttentionArgs& args, const AttentionItem& item, uint8_t* scratch) {
  const int32_t n = (item.row_end - item.row_begin) * rule::group_size(args);
  for (int32_t i = 0; i < n; ++i) naive_row<L, type>(args, item, i, scratch);
}

/// Chooses the instance for the cache's type.
template <class L>
struct AttentionLevel {
  static void append(const KvLayout& layout, uint8_t* block, int32_t slot, const float* k, const float* v) {
    switch (layout.type) {
      case KvType::kF16:
        return append_token<L, KvType::kF16>(layout, block, slot, k, v);
      case KvType::kBF16:
        return append_token<L, KvType::kBF16>(layout, block, slot, k, v);
      case KvType::kF32:
        return append_token<L, KvType::kF32>(layout, block, slot, k, v);
    }
  }
  static void attend(const AttentionArgs& args, const AttentionItem& item, uint8_t* scratch) {
    switch (args.layout.type) {
      case KvType::kF16:
        return Attention<L, KvType::kF16>::attend(args, item, scratch);
      case KvType::kBF16:
        return Attention<L, KvType::kBF16>::attend(args, item, scratch);
      case KvType::kF32:
        return Attention<L, KvType::kF32>::attend(args, item, scratch);
    }
  }
  static void attend_split(const AttentionArgs& args, const AttentionItem& item, int32_t split_idx, uint8_t* scratch,
                           float* partial) {
    switch (args.layout.type) {
      case KvType::kF16:
        return Attention<L, KvType::kF16>::attend_split(args, item, split_idx, scratch, partial);
      case KvType::kBF16:
        return Attention<L, KvType::kBF16>::attend_split(args, item, split_idx, scratch, partial);
      case KvType::kF32:
        return Attention<L, KvType::kF32>::attend_split(args, item, split_idx, scratch, partial);
    }
  }
  static void fold_splits(const AttentionArgs& args, const AttentionItem& item, const float* partials,
                          int32_t num_splits) {
    Attention<L, KvType::kF32>::fold_splits(args, item, partials, num_splits);  // partials are F32 in every type
  }
  static void attend_naive(const AttentionArgs& args, const AttentionItem& item, uint8_t* scratch) {
    switch (args.layout.type) {
      case KvType::kF16:
        return naive<L, KvType::kF16>(args, item, scratch);
      case KvType::kBF16:
        return naive<L, KvType::kBF16>(args, item, scratch);
      case KvType::kF32:
        return naive<L, KvType::kF32>(args, item, scratch);
    }
  }

  static constexpr AttentionKernels kKernels = {append,       attend_scratch_bytes, attend,      rule::partial_floats,
                                                attend_split, fold_splits,          naive_bytes, attend_naive};
};

}  // namespace
}  // namespace pagoda
