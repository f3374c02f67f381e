// The definition of paged flash attention, one row (query position x head) at a time. FTZ and DAZ must be on.
//
// Row at position p, tile of 64 tokens, split of 256, both at absolute positions:
//   query     q' = q * query_scale; BF16 caches round q' to BF16
//   score     s = q' . k, dims rising; BF16: per pair of dims the odd product first, then the even one (vdpbf16ps)
//             soft-cap c: s = sign(s) * (1 - e) / (1 + e) * (c log2e), e = 2^-|s|; unseen: -inf
//   tile      m' = max(m, scores); a = 2^(m - m'); p = 2^(s - m'), rounded to BF16 in BF16 caches; l *= a; O *= a
//             l has 16 lanes: lane j adds tokens j, 16+j, ...; BF16: of each 32 tokens 2j+1, then 2j
//             O[d] adds p * v, tokens rising; BF16: per pair of tokens odd, then even
//   split     folded in order into (M, L, A): M' = max(M, m), A = fma(O, 2^(m-M'), A * 2^(M-M')), L likewise
//   out       A * (1 / L) + 0, or 0 when nothing was seen (L = 0)

#include "kernels/attention.h"

#include <limits>

#include "kernels/kernel_table.h"
#include "kernels/reference/attention_rule.h"
#include "kernels/reference/math.h"
#include "tensor/half.h"

namespace pagoda {

namespace {

namespace rule = attention_rule;

constexpr int kLanes = 16;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

float larger(float a, float b) {
  return a > b ? a : b;
}

/// To BF16 with denormals flushed, as the vector unit does.
uint16_t to_bf16(float x) {
  const uint32_t u = f32::to_bits(x);
  return (u & 0x7f800000u) == 0 ? static_cast<uint16_t>((u >> 16) & 0x8000u) : f32_to_bf16(x);
}

float round_bf16(float x) {
  return bf16_to_f32(to_bf16(x));
}

uint16_t to_f16(float x) {
  if (x > rule::kF16Max) x = rule::kF16Max;
  if (x < -rule::kF16Max) x = -rule::kF16Max;
  return f32_to_f16(x);
}

size_t key_index(const KvLayout& l, int32_t token, int32_t d) {
  if (l.type == KvType::kBF16) return (static_cast<size_t>(d / 2) * kKvPanelTokens + token) * 2 + (d & 1);
  return static_cast<size_t>(d) * kKvPanelTokens + token;
}

size_t value_index(const KvLayout& l, int32_t token, int32_t d) {
  if (l.type == KvType::kBF16) return (static_cast<size_t>(token / 2) * l.value_dim + d) * 2 + (token & 1);
  return static_cast<size_t>(token) * l.value_dim + d;
}

float stored(KvType type, const uint8_t* part, size_t index) {
  if (type == KvType::kF32) return reinterpret_cast<const float*>(part)[index];
  const uint16_t half = reinterpret_cast<const uint16_t*>(part)[index];
  return type == KvType::kF16 ? f16_to_f32(half) : bf16_to_f32(half);
}

void store(KvType type, uint8_t* part, size_t index, float x) {
  if (type == KvType::kF32) {
    reinterpret_cast<float*>(part)[index] = x;
    return;
  }
  reinterpret_cast<uint16_t*>(part)[index] = type == KvType::kF16 ? to_f16(x) : to_bf16(x);
}

void append(const KvLayout& layout, uint8_t* block, int32_t slot, const float* k, const float* v) {
  const int32_t panels = layout.block_tokens / kKvPanelTokens;
  const int32_t token = slot % kKvPanelTokens;
  for (int32_t h = 0; h < layout.num_kv_heads; ++h) {
    uint8_t* slab = block + (static_cast<size_t>(h) * panels + slot / kKvPanelTokens) * layout.slab_bytes();
    if (token == 0) memset(slab, 0, layout.slab_bytes());
    for (int32_t d = 0; d < layout.key_dim; ++d)
      store(layout.type, slab, key_index(layout, token, d), k[h * layout.key_dim + d]);
    for (int32_t d = 0; d < layout.value_dim; ++d) {
      store(layout.type, slab + rule::key_bytes(layout), value_index(layout, token, d), v[h * layout.value_dim + d]);
    }
  }
}

/// One row's state and its buffers, cut out of the caller's scratch.
struct Row {
  const AttentionArgs& args;
  int32_t kv_head;
  int32_t position;
  float* query;   // [key_dim], scaled
  float* scores;  // [tile]
  float* values;  // O, [value_dim]
  float maximum;
  float sums[kLanes];

  bool bf16() const { return args.layout.type == KvType::kBF16; }
};

float dot_key(const Row& row, const uint8_t* slab, int32_t token) {
  const KvLayout& l = row.args.layout;
  float acc = 0.0f;
  for (int32_t d = 0; d < l.key_dim; ++d) {
    const int32_t dim = row.bf16() ? d ^ 1 : d;  // odd before even
    acc = f32::fma(row.query[dim], stored(l.type, slab, key_index(l, token, dim)), acc);
  }
  return acc;
}

float score(const Row& row, int32_t position) {
  const int32_t token = position % kKvPanelTokens;
  float s = dot_key(row, rule::slab(row.args, row.kv_head, position / kKvPanelTokens), token);
  if (row.args.soft_cap == 0.0f) return s;
  const float e = f32::exp2_nonpositive(-f32::absolute(s));
  const float magnitude = (1.0f - e) / (1.0f + e);
  const uint32_t sign = f32::to_bits(s) & 0x80000000u;
  return f32::from_bits(f32::to_bits(magnitude) | sign) * (row.args.soft_cap * rule::kLog2e);
}

float tree_sum(const float (&lanes)[kLanes]) {
  float t[kLanes];
  for (int j = 0; j < kLanes; ++j) t[j] = lanes[j];
  for (int step = 8; step > 0; step /= 2) {
    for (int j = 0; j < step; ++j) t[j] += t[j + step];
  }
  return t[0];
}

void begin_split(Row& row) {
  row.maximum = rule::kLowest;
  for (float& lane : row.sums) lane = 0.0f;
  for (int32_t d = 0; d < row.args.layout.value_dim; ++d) row.values[d] = 0.0f;
}

/// Tokens [begin, begin + size), size a multiple of 32; scores of positions that the row does not see are -inf.
void add_tile(Row& row, int32_t begin, int32_t size) {
  const KvLayout& l = row.args.layout;
  const int32_t first = rule::window_begin(row.args.window, row.position);
  float maximum = row.maximum;
  for (int32_t t = 0; t < size; ++t) {
    const int32_t p = begin + t;
    row.scores[t] = p < first || p > row.position ? kMinusInfinity : score(row, p);
    maximum = larger(row.scores[t], maximum);
  }
  const float alpha = f32::exp2_nonpositive(row.maximum - maximum);
  row.maximum = maximum;
  for (int32_t t = 0; t < size; ++t) {
    const float p = f32::exp2_nonpositive(row.scores[t] - maximum);
    row.scores[t] = row.bf16() ? round_bf16(p) : p;
  }
  for (float& lane : row.sums) lane *= alpha;
  for (int32_t t = 0; t < size; ++t) {
    if (row.bf16()) {
      row.sums[(t % 32) / 2] += row.scores[t ^ 1];
    } else {
      row.sums[t % kLanes] += row.scores[t];
    }
  }
  for (int32_t d = 0; d < l.value_dim; ++d) {
    float acc = row.values[d] * alpha;
    for (int32_t t = 0; t < size; ++t) {
      const int32_t token = row.bf16() ? t ^ 1 : t;
      const int32_t p = begin + token;
      if (p < first || p > row.position) continue;  // its weight is exactly 0
      const uint8_t* part = rule::slab(row.args, row.kv_head, p / kKvPanelTokens) + rule::key_bytes(l);
      acc = f32::fma(row.scores[token], stored(l.type, part, value_index(l, p % kKvPanelTokens, d)), acc);
    }
    row.values[d] = acc;
  }
}

/// (M, L, A) of the splits so far.
struct Total {
  float maximum = rule::kLowest;
  float sum = 0.0f;
  float* values;
};

void fold(Total& total, float maximum, float sum, const float* values, int32_t value_dim) {
  const float m = larger(maximum, total.maximum);
  const float a = f32::exp2_nonpositive(total.maximum - m);
  const float b = f32::exp2_nonpositive(maximum - m);
  total.maximum = m;
  total.sum = f32::fma(sum, b, total.sum * a);
  for (int32_t d = 0; d < value_dim; ++d) total.values[d] = f32::fma(values[d], b, total.values[d] * a);
}

void finish(const Total& total, int32_t value_dim, float* out) {
  const float inverse = total.sum == 0.0f ? 0.0f : 1.0f / total.sum;
  for (int32_t d = 0; d < value_dim; ++d) out[d] = total.values[d] * inverse + 0.0f;  // + 0 removes -0
}

size_t row_scratch_floats(const AttentionArgs& args, int32_t tile) {
  return static_cast<size_t>(args.layout.key_dim) + tile + 2 * static_cast<size_t>(args.layout.value_dim);
}

Row make_row(const AttentionArgs& args, const AttentionItem& item, int32_t row_idx, int32_t tile, uint8_t* scratch) {
  auto* buffer = reinterpret_cast<float*>(scratch);
  Row row{.args = args,
          .kv_head = item.kv_head,
          .position = rule::row_position(args, item, row_idx),
          .query = buffer,
          .scores = buffer + args.layout.key_dim,
          .values = buffer + args.layout.key_dim + tile,
          .maximum = rule::kLowest,
          .sums = {}};
  const float* q = rule::query_row(args, item, row_idx);
  const float factor = rule::query_scale(args);
  for (int32_t d = 0; d < args.layout.key_dim; ++d) {
    const float x = q[d] * factor;
    row.query[d] = row.bf16() ? round_bf16(x) : x;
  }
  return row;
}

void attend_one_split(Row& row, int32_t split_begin) {
  begin_split(row);
  for (int32_t t = split_begin; t < split_begin + kAttentionSplit; t += kAttentionTile)
    add_tile(row, t, kAttentionTile);
}

int32_t num_item_rows(const AttentionArgs& args, const AttentionItem& item) {
  return (item.row_end - item.row_begin) * rule::group_size(args);
}

size_t scratch_bytes(const AttentionArgs& args, int32_t) {
  return row_scratch_floats(args, kAttentionTile) * sizeof(float);
}

void attend(const AttentionArgs& args, const AttentionItem& item, uint8_t* scratch) {
  const int32_t value_dim = args.layout.value_dim;
  for (int32_t i = 0; i < num_item_rows(args, item); ++i) {
    Row row = make_row(args, item, i, kAttentionTile, scratch);
    Total total{.values = row.values + value_dim};
    for (int32_t d = 0; d < value_dim; ++d) total.values[d] = 0.0f;
    for (int32_t begin = 0; begin <= row.position; begin += kAttentionSplit) {
      attend_one_split(row, begin);
      fold(total, row.maximum, tree_sum(row.sums), row.values, value_dim);
    }
    finish(total, value_dim, rule::output_row(args, item, i));
  }
}

void attend_split(const AttentionArgs& args, const AttentionItem& item, int32_t split_idx, uint8_t* scratch,
                  float* partial) {
  const int32_t n = num_item_rows(args, item);
  const size_t padded = rule::padded16(n);
  const int32_t value_dim = args.layout.value_dim;
  for (int32_t i = 0; i < n; ++i) {
    Row row = make_row(args, item, i, kAttentionTile, scratch);
    attend_one_split(row, split_idx * kAttentionSplit);
    partial[i] = row.maximum;
    partial[padded + i] = tree_sum(row.sums);
    for (int32_t d = 0; d < value_dim; ++d)
      partial[2 * padded + static_cast<size_t>(i) * value_dim + d] = row.values[d];
  }
}

void fold_splits(const AttentionArgs& args, const AttentionItem& item, const float* partials, int32_t num_splits) {
  const int32_t n = num_item_rows(args, item);
  const size_t padded = rule::padded16(n);
  const int32_t value_dim = args.layout.value_dim;
  const size_t stride = rule::partial_floats(args, item.row_end - item.row_begin);
  for (int32_t i = 0; i < n; ++i) {
    Total total{.values = rule::output_row(args, item, i)};
    for (int32_t d = 0; d < value_dim; ++d) total.values[d] = 0.0f;
    for (int32_t s = 0; s < num_splits; ++s) {
      const float* p = partials + s * stride;
      fold(total, p[i], p[padded + i], p + 2 * padded + static_cast<size_t>(i) * value_dim, value_dim);
    }
    finish(total, value_dim, total.values);
  }
}

/// The tile of the naive form: the whole row, in whole flash tiles.
int32_t naive_tile(int32_t context) {
  return (context + kAttentionTile - 1) / kAttentionTile * kAttentionTile;
}

size_t naive_scratch_bytes(const AttentionArgs& args, int32_t max_context) {
  return row_scratch_floats(args, naive_tile(max_context)) * sizeof(float);
}

void attend_naive(const AttentionArgs& args, const AttentionItem& item, uint8_t* scratch) {
  const int32_t value_dim = args.layout.value_dim;
  for (int32_t i = 0; i < num_item_rows(args, item); ++i) {
    const int32_t tile = naive_tile(rule::row_position(args, item, i) + 1);
    Row row = make_row(args, item, i, tile, scratch);
    Total total{.values = row.values + value_dim};
    for (int32_t d = 0; d < value_dim; ++d) total.values[d] = 0.0f;
    begin_split(row);
    add_tile(row, 0, tile);
    fold(total, row.maximum, tree_sum(row.sums), row.values, value_dim);
    finish(total, value_dim, rule::output_row(args, item, i));
  }
}

constexpr AttentionKernels kKernels = {
    append, scratch_bytes, attend, rule::partial_floats, attend_split, fold_splits, naive_scratch_bytes, attend_naive};

}  // namespace

const AttentionKernels& attention_kernels_reference() {
  return kKernels;
}

}  // namespace pagoda
