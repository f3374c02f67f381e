#pragma once
// A sequence in a paged cache for attention tests: random K, V and Q; a pool full of NaN bytes; a shuffled block table.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/cpu.h"
#include "base/thread_team.h"
#include "kernels/kernel_table.h"
#include "kernels/simd/attention_native.h"
#include "tensor/half.h"

namespace pagoda {

struct AttentionShape {
  KvType type = KvType::kF16;
  int32_t group = 3;
  int32_t num_kv_heads = 2;
  int32_t key_dim = 64;
  int32_t value_dim = 64;
  int32_t window = 0;
  float soft_cap = 0.0f;
  int32_t block_tokens = 16;
  int32_t context = 330;

  std::string name() const {
    const char* types[] = {"F16", "BF16", "F32"};
    return std::string(types[static_cast<int>(type)]) + "_G" + std::to_string(group) + "_K" +
           std::to_string(num_kv_heads) + "_D" + std::to_string(key_dim) + "x" + std::to_string(value_dim) + "_W" +
           std::to_string(window) + (soft_cap != 0.0f ? "_cap" : "") + "_B" + std::to_string(block_tokens) + "_N" +
           std::to_string(context);
  }
};

struct NamedAttention {
  const char* name;
  const AttentionKernels* kernels;
};

/// The implementations that this machine can run, the reference first.
inline std::vector<NamedAttention> attention_levels() {
  std::vector<NamedAttention> levels = {{"reference", &attention_kernels_reference()}};
  const Isa isa = detect_isa();
  if (isa >= Isa::kAvx2) levels.push_back({"avx2", &attention_kernels_avx2()});
  if (isa >= Isa::kAvx512) levels.push_back({"avx512", &attention_kernels_avx512()});
  if (isa >= Isa::kAvx512Bf16) levels.push_back({"native bf16", &native_bf16_attention_kernels()});
  return levels;
}

class PagedSequence {
 public:
  explicit PagedSequence(const AttentionShape& shape, uint32_t seed = 1, float q_scale = 1.0f) : shape_(shape) {
    layout_ = {.type = shape.type,
               .block_tokens = shape.block_tokens,
               .num_kv_heads = shape.num_kv_heads,
               .key_dim = shape.key_dim,
               .value_dim = shape.value_dim};
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& v, size_t n, float factor) {
      v.resize(n);
      for (float& x : v) x = normal(random) * factor;
    };
    fill(k_, static_cast<size_t>(shape.context) * shape.num_kv_heads * shape.key_dim, 1.0f);
    fill(v_, static_cast<size_t>(shape.context) * shape.num_kv_heads * shape.value_dim, 1.0f);
    fill(q_, static_cast<size_t>(shape.context) * num_heads() * shape.key_dim, q_scale);
    const int32_t num_blocks = (shape.context + shape.block_tokens - 1) / shape.block_tokens;
    table_.resize(num_blocks + 3);
    std::iota(table_.begin(), table_.end(), 0);
    std::shuffle(table_.begin(), table_.end(), random);
    pool_ = AlignedBuffer::create(table_.size() * layout_.block_bytes()).value();
    poison();
  }

  int32_t num_heads() const { return shape_.group * shape_.num_kv_heads; }
  size_t q_stride() const { return static_cast<size_t>(num_heads()) * shape_.key_dim; }
  size_t out_stride() const { return static_cast<size_t>(num_heads()) * shape_.value_dim; }
  const KvLayout& layout() const { return layout_; }
  std::vector<int32_t>& table() { return table_; }
  std::vector<float>& q() { return q_; }
  const std::vector<float>& k() const { return k_; }
  const std::vector<float>& v() const { return v_; }
  AlignedBuffer& pool() { return pool_; }

  /// Every byte 0xff: NaN in each of the cache types.
  void poison() { std::memset(pool_.data(), 0xff, pool_.size()); }

  void append(const AttentionKernels& kernels, int32_t begin, int32_t end) {
    for (int32_t p = begin; p < end; ++p) {
      uint8_t* block = pool_.data() + static_cast<size_t>(table_[p / shape_.block_tokens]) * layout_.block_bytes();
      kernels.append(layout_, block, p % shape_.block_tokens,
                     k_.data() + static_cast<size_t>(p) * shape_.num_kv_heads * shape_.key_dim,
                     v_.data() + static_cast<size_t>(p) * shape_.num_kv_heads * shape_.value_dim);
    }
  }

  /// Rows [begin, end) of the sequence writing to the same rows of `out`.
  AttentionArgs args(int32_t begin, int32_t end, std::vector<float>& out) const {
    AttentionArgs a;
    a.layout = layout_;
    a.blocks = pool_.data();
    a.block_table = table_.data();
    a.num_heads = num_heads();
    a.scale = 1.0f / std::sqrt(static_cast<float>(shape_.key_dim));
    a.soft_cap = shape_.soft_cap;
    a.window = shape_.window;
    a.first_position = begin;
    a.num_rows = end - begin;
    a.q = q_.data() + begin * q_stride();
    a.q_stride = q_stride();
    a.out = out.data() + begin * out_stride();
    a.out_stride = out_stride();
    return a;
  }

  std::vector<float> make_output() const {
    return std::vector<float>(static_cast<size_t>(shape_.context) * out_stride(), -12345.0f);
  }

 private:
  AttentionShape shape_;
  KvLayout layout_;
  std::vector<float> k_, v_, q_;
  std::vector<int32_t> table_;
  AlignedBuffer pool_;
};

/// All rows of `args`, one item per KV head.
inline void attend_rows(const AttentionKernels& kernels, const AttentionArgs& args) {
  AlignedBuffer scratch = AlignedBuffer::create(kernels.scratch_bytes(args, args.num_rows)).value();
  for (int32_t h = 0; h < args.layout.num_kv_heads; ++h) {
    kernels.attend(args, {.kv_head = h, .row_begin = 0, .row_end = args.num_rows}, scratch.data());
  }
}

/// Number of floats whose bits differ.
inline size_t count_different(const std::vector<float>& a, const std::vector<float>& b) {
  size_t n = a.size() != b.size();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) n += std::memcmp(&a[i], &b[i], sizeof(float)) != 0;
  return n;
}

inline size_t count_not_finite(const std::vector<float>& v) {
  return static_cast<size_t>(std::count_if(v.begin(), v.end(), [](float x) { return !std::isfinite(x); }));
}

}  // namespace pagoda
