#include "kernels/attention.h"

#include <cmath>
#include <limits>
#include <map>

#include "attention_fixture.h"

namespace pagoda {
namespace {

class AttentionTest : public testing::TestWithParam<AttentionShape> {
 protected:
  ScopedFlushDenormals flush_;
};

/// Kept per shape: the scalar definition is slow.
const std::vector<float>& reference_output(const AttentionShape& shape) {
  static std::map<std::string, std::vector<float>> known;
  std::vector<float>& out = known[shape.name()];
  if (!out.empty()) return out;
  PagedSequence sequence(shape);
  out = sequence.make_output();
  sequence.append(attention_kernels_reference(), 0, shape.context);
  attend_rows(attention_kernels_reference(), sequence.args(0, shape.context, out));
  return out;
}

TEST_P(AttentionTest, EveryLevelAndChunkingEqualsReference) {
  const AttentionShape shape = GetParam();
  const std::vector<float>& expected = reference_output(shape);
  ASSERT_EQ(count_not_finite(expected), 0u);
  PagedSequence sequence(shape);
  for (const NamedAttention& level : attention_levels()) {
    if (level.kernels == &attention_kernels_reference()) continue;
    for (const int32_t chunk : {1, 7, 64, shape.context}) {
      sequence.poison();
      std::vector<float> out = sequence.make_output();
      for (int32_t begin = 0; begin < shape.context; begin += chunk) {
        const int32_t end = std::min(begin + chunk, shape.context);
        sequence.append(*level.kernels, begin, end);
        attend_rows(*level.kernels, sequence.args(begin, end, out));
      }
      EXPECT_EQ(count_different(out, expected), 0u) << level.name << " chunk " << chunk;
    }
  }
}

TEST_P(AttentionTest, SplitsFoldToTheBitsOfAttend) {
  const AttentionShape shape = GetParam();
  const std::vector<float>& expected = reference_output(shape);
  PagedSequence sequence(shape);
  for (const NamedAttention& level : attention_levels()) {
    const AttentionKernels& kernels = *level.kernels;
    sequence.poison();
    sequence.append(kernels, 0, shape.context);
    for (const int32_t wanted : {0, shape.context - 5, shape.context - 1}) {
      const int32_t begin = std::max(wanted, 0);
      const int32_t rows = std::min(shape.context - begin, 5);
      std::vector<float> out = expected;
      std::fill(out.begin() + begin * sequence.out_stride(), out.begin() + (begin + rows) * sequence.out_stride(),
                7.0f);
      const AttentionArgs args = sequence.args(begin, begin + rows, out);
      const int32_t first = std::max(0, shape.window > 0 ? begin + 1 - shape.window : 0) / kAttentionSplit;
      const int32_t num_splits = (begin + rows - 1) / kAttentionSplit + 1 - first;
      const size_t stride = kernels.partial_floats(args, rows);
      ASSERT_EQ(stride % 16, 0u);
      AlignedBuffer scratch = AlignedBuffer::create(kernels.scratch_bytes(args, rows)).value();
      AlignedBuffer partials = AlignedBuffer::create(stride * num_splits * sizeof(float)).value();
      for (int32_t h = 0; h < shape.num_kv_heads; ++h) {
        const AttentionItem item = {.kv_head = h, .row_begin = 0, .row_end = rows};
        for (int32_t s = num_splits - 1; s >= 0; --s) {  // any order
          kernels.attend_split(args, item, first + s, scratch.data(), partials.as<float>() + s * stride);
        }
        kernels.fold_splits(args, item, partials.as<float>(), num_splits);
      }
      EXPECT_EQ(count_different(out, expected), 0u) << level.name << " from row " << begin;
    }
  }
}

TEST_P(AttentionTest, NaiveEqualsItsReferenceAndIsCloseToFlash) {
  const AttentionShape shape = GetParam();
  const std::vector<float>& flash = reference_output(shape);
  PagedSequence sequence(shape);
  std::vector<float> expected;
  const int32_t begin = std::max(0, shape.context - 20);
  for (const NamedAttention& level : attention_levels()) {
    sequence.poison();
    sequence.append(*level.kernels, 0, shape.context);
    std::vector<float> out = flash;
    const AttentionArgs args = sequence.args(begin, shape.context, out);
    AlignedBuffer scratch = AlignedBuffer::create(level.kernels->naive_scratch_bytes(args, shape.context)).value();
    for (int32_t h = 0; h < shape.num_kv_heads; ++h) {
      level.kernels->attend_naive(args, {.kv_head = h, .row_begin = 0, .row_end = args.num_rows}, scratch.data());
    }
    if (expected.empty()) expected = out;
    EXPECT_EQ(count_different(out, expected), 0u) << level.name;
  }
  // P is rounded to BF16 against different maxima: half a BF16 unit of |v| <= 6; F32 sums otherwise.
  const float tolerance = shape.type == KvType::kBF16 ? 6.0f / 256 : 1e-5f;
  for (size_t i = 0; i < flash.size(); ++i) ASSERT_NEAR(expected[i], flash[i], tolerance) << i;
}

TEST_P(AttentionTest, BlocksBehindTheWindowAreNeverRead) {
  const AttentionShape shape = GetParam();
  if (shape.window == 0) GTEST_SKIP() << "sees every block";
  const std::vector<float>& expected = reference_output(shape);
  PagedSequence sequence(shape);
  for (const NamedAttention& level : attention_levels()) {
    sequence.append(*level.kernels, 0, shape.context);
    const int32_t row = shape.context - 1;
    std::vector<float> out = expected;
    std::fill(out.end() - sequence.out_stride(), out.end(), 7.0f);
    const std::vector<int32_t> table = sequence.table();
    const int32_t first_block = std::max(0, row + 1 - shape.window) / shape.block_tokens;
    for (int32_t b = 0; b < first_block; ++b) sequence.table()[b] = -(1 << 30);  // reading it would fault
    attend_rows(*level.kernels, sequence.args(row, row + 1, out));
    sequence.table() = table;
    EXPECT_EQ(count_different(out, expected), 0u) << level.name;
  }
}

std::vector<AttentionShape> shapes() {
  std::vector<AttentionShape> list;
  for (const KvType type : {KvType::kF16, KvType::kBF16, KvType::kF32}) {
    list.push_back({.type = type});
    list.push_back({.type = type, .group = 1, .num_kv_heads = 3, .key_dim = 16, .value_dim = 32, .block_tokens = 32});
    list.push_back({.type = type, .group = 2, .num_kv_heads = 1, .key_dim = 80, .value_dim = 96, .window = 77});
    list.push_back({.type = type, .group = 4, .num_kv_heads = 1, .key_dim = 128, .value_dim = 128, .soft_cap = 30.0f});
    list.push_back({.type = type,
                    .group = 5,
                    .num_kv_heads = 1,
                    .key_dim = 32,
                    .value_dim = 16,
                    .window = 100,
                    .soft_cap = 5.0f,
                    .block_tokens = 32,
                    .context = 600});
    list.push_back({.type = type, .group = 8, .num_kv_heads = 1, .key_dim = 256, .value_dim = 256, .context = 90});
    list.push_back({.type = type,
                    .group = 7,
                    .num_kv_heads = 1,
                    .key_dim = 48,
                    .value_dim = 48,
                    .window = 300,
                    .block_tokens = 64,
                    .context = 700});
    list.push_back({.type = type, .group = 16, .num_kv_heads = 1, .key_dim = 112, .value_dim = 112, .context = 150});
    list.push_back({.type = type, .group = 6, .num_kv_heads = 1, .context = 1});
    list.push_back(
        {.type = type, .group = 17, .num_kv_heads = 1, .key_dim = 16, .value_dim = 16, .window = 1, .context = 70});
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionTest, testing::ValuesIn(shapes()),
                         [](const auto& param) { return param.param.name(); });

TEST(AttentionAppend, EveryLevelWritesTheSameBytes) {
  ScopedFlushDenormals flush;
  for (const KvType type : {KvType::kF16, KvType::kBF16, KvType::kF32}) {
    const KvLayout layout = {.type = type, .block_tokens = 32, .num_kv_heads = 2, .key_dim = 48, .value_dim = 80};
    std::vector<float> k(96);
    std::vector<float> v(160);
    std::mt19937 random(3);
    std::vector<uint8_t> expected;
    for (const NamedAttention& level : attention_levels()) {
      random.seed(3);
      std::vector<uint8_t> block(layout.block_bytes(), 0xff);
      for (int32_t slot = 0; slot < 21; ++slot) {  // the second panel stays partly written
        const auto any = [&](float& x) {
          const float special[] = {1e6f, -1e6f, 65520.0f, 1e-41f, -1e-41f, 1e-39f, -0.0f, 3.3895e38f, 6e-8f, 2.9e-8f};
          x = random() % 8 == 0 ? special[random() % 10] : std::ldexp(static_cast<float>(random()) / 4e9f - 0.5f, 6);
        };
        for (float& x : k) any(x);
        for (float& x : v) any(x);
        level.kernels->append(layout, block.data(), slot, k.data(), v.data());
      }
      if (expected.empty()) expected = block;
      EXPECT_TRUE(block == expected) << level.name << " type " << static_cast<int>(type);
    }
  }
}

TEST(AttentionAppend, F16IsClampedAndPanelsAreClearedFirst) {
  ScopedFlushDenormals flush;
  const KvLayout layout = {.type = KvType::kF16, .block_tokens = 16, .num_kv_heads = 1, .key_dim = 16, .value_dim = 16};
  std::vector<float> k(16, 1e30f);
  std::vector<float> v(16, -1e30f);
  for (const NamedAttention& level : attention_levels()) {
    std::vector<uint8_t> block(layout.block_bytes(), 0xff);
    level.kernels->append(layout, block.data(), 0, k.data(), v.data());
    const auto* half = reinterpret_cast<const uint16_t*>(block.data());
    EXPECT_EQ(half[0], 0x7bff);
    EXPECT_EQ(half[1], 0);         // token 1 of dimension 0
    EXPECT_EQ(half[256], 0xfbff);  // V, token 0
    EXPECT_EQ(half[256 + 16], 0);  // V, token 1
  }
}

/// Softmax attention in F64 over the stored values; the bound follows the rounding of the type's own arithmetic.
void compare_with_f64(const AttentionShape& shape, double tolerance) {
  ScopedFlushDenormals flush;
  PagedSequence sequence(shape, 5);
  std::vector<float> out = sequence.make_output();
  const AttentionKernels& kernels = *attention_levels().back().kernels;
  sequence.append(kernels, 0, shape.context);
  attend_rows(kernels, sequence.args(0, shape.context, out));
  const auto stored = [&](float x) -> double {
    if (shape.type == KvType::kF16) return f16_to_f32(f32_to_f16(x));
    return shape.type == KvType::kBF16 ? bf16_to_f32(f32_to_bf16(x)) : x;
  };
  for (int32_t p = 0; p < shape.context; p += 37) {
    for (int32_t h = 0; h < sequence.num_heads(); ++h) {
      const int32_t kv = h / shape.group;
      const float* q = sequence.q().data() + p * sequence.q_stride() + h * shape.key_dim;
      const int32_t first = shape.window > 0 ? std::max(0, p + 1 - shape.window) : 0;
      std::vector<double> weight(p + 1);
      double sum = 0;
      for (int32_t t = first; t <= p; ++t) {
        double s = 0;
        for (int32_t d = 0; d < shape.key_dim; ++d) {
          s += static_cast<double>(q[d]) *
               stored(sequence.k()[(static_cast<size_t>(t) * shape.num_kv_heads + kv) * shape.key_dim + d]);
        }
        s /= std::sqrt(static_cast<double>(shape.key_dim));
        if (shape.soft_cap != 0.0f) s = shape.soft_cap * std::tanh(s / shape.soft_cap);
        weight[t] = std::exp(s);
        sum += weight[t];
      }
      for (int32_t d = 0; d < shape.value_dim; ++d) {
        double expected = 0;
        for (int32_t t = first; t <= p; ++t) {
          expected += weight[t] *
                      stored(sequence.v()[(static_cast<size_t>(t) * shape.num_kv_heads + kv) * shape.value_dim + d]);
        }
        ASSERT_NEAR(out[p * sequence.out_stride() + h * shape.value_dim + d], expected / sum, tolerance)
            << shape.name() << " position " << p << " head " << h << " dim " << d;
      }
    }
  }
}

TEST(Attention, IsCloseToF64) {
  // F32 arithmetic: a score of 64 terms errs by at most 64 eps |q||k| / 8 ~ 6e-5, usually 1e-6; weights err alike and
  // average out over |v| <= 5. BF16 rounds q (2^-9 relative: score error about 2^-9 * 3 sigma) and P (2^-9).
  for (const float cap : {0.0f, 4.0f}) {
    for (const int32_t window : {0, 50}) {
      compare_with_f64({.type = KvType::kF32, .window = window, .soft_cap = cap, .context = 300}, 1e-5);
      compare_with_f64({.type = KvType::kF16, .window = window, .soft_cap = cap, .context = 300}, 1e-5);
      compare_with_f64({.type = KvType::kBF16, .window = window, .soft_cap = cap, .context = 300}, 0.04);
    }
  }
}

TEST(Attention, B13RowsThatSeeNothingGiveZero) {
  ScopedFlushDenormals flush;
  for (const KvType type : {KvType::kF16, KvType::kBF16, KvType::kF32}) {
    for (const NamedAttention& level : attention_levels()) {
      const AttentionShape shape = {.type = type, .context = 64};
      PagedSequence sequence(shape);
      sequence.append(*level.kernels, 0, shape.context);
      std::vector<float> out = sequence.make_output();
      // A fold over no split, and over splits that lie after the rows, is what a fully masked row comes to.
      AttentionArgs args = sequence.args(0, 16, out);
      AlignedBuffer scratch = AlignedBuffer::create(level.kernels->scratch_bytes(args, 16)).value();
      AlignedBuffer partial = AlignedBuffer::create(level.kernels->partial_floats(args, 16) * sizeof(float)).value();
      for (int32_t h = 0; h < shape.num_kv_heads; ++h) {
        const AttentionItem item = {.kv_head = h, .row_begin = 0, .row_end = 16};
        level.kernels->attend_split(args, item, 1, scratch.data(), partial.as<float>());
        level.kernels->fold_splits(args, item, partial.as<float>(), 1);
      }
      for (size_t i = 0; i < 16 * sequence.out_stride(); ++i) ASSERT_EQ(out[i], 0.0f) << level.name;
    }
  }
}

TEST(Attention, B13ScoresOfMinusInfinityGiveZeroAndLeaveOtherRowsAlone) {
  ScopedFlushDenormals flush;
  const AttentionShape shape = {.type = KvType::kF32, .num_kv_heads = 1, .context = 200};
  for (const NamedAttention& level : attention_levels()) {
    for (const int32_t first_bad : {0, 90, 186}) {  // 14 rows at the front, in the middle, at the end
      PagedSequence sequence(shape);
      std::vector<float> expected = sequence.make_output();
      sequence.append(*level.kernels, 0, shape.context);
      attend_rows(*level.kernels, sequence.args(0, shape.context, expected));
      // Queries so large that every score overflows to -inf: the keys get one common positive dimension.
      PagedSequence masked(shape);
      masked.append(*level.kernels, 0, shape.context);
      for (int32_t p = 0; p < shape.context; ++p) {
        auto* slab =
            reinterpret_cast<float*>(masked.pool().data() + masked.table()[p / 16] * masked.layout().block_bytes());
        auto* original = reinterpret_cast<float*>(sequence.pool().data() +
                                                  sequence.table()[p / 16] * sequence.layout().block_bytes());
        slab[p % 16] = original[p % 16] = 2.0f;
      }
      attend_rows(*level.kernels, sequence.args(0, shape.context, expected));
      for (size_t row = first_bad; row < first_bad + 14u; ++row) {
        float* q = masked.q().data() + row * masked.q_stride();
        for (int32_t h = 0; h < shape.group; ++h) {
          std::fill(q + h * shape.key_dim, q + (h + 1) * shape.key_dim, 0.0f);
          q[h * shape.key_dim] = -std::numeric_limits<float>::max();
        }
      }
      std::vector<float> out = masked.make_output();
      AttentionArgs args = masked.args(0, shape.context, out);
      args.scale = sequence.args(0, 1, expected).scale;
      attend_rows(*level.kernels, args);
      for (size_t row = 0; row < static_cast<size_t>(shape.context); ++row) {
        const bool bad = row >= static_cast<size_t>(first_bad) && row < first_bad + 14u;
        for (size_t i = row * masked.out_stride(); i < (row + 1) * masked.out_stride(); ++i) {
          ASSERT_EQ(out[i], bad ? 0.0f : expected[i]) << level.name << " row " << row;
        }
      }
    }
  }
}

TEST(Attention, NanQueryStaysInItsRow) {
  ScopedFlushDenormals flush;
  for (const NamedAttention& level : attention_levels()) {
    const AttentionShape shape = {.num_kv_heads = 1, .context = 100};
    PagedSequence sequence(shape);
    sequence.append(*level.kernels, 0, shape.context);
    std::vector<float> expected = sequence.make_output();
    attend_rows(*level.kernels, sequence.args(0, shape.context, expected));
    sequence.q()[50 * sequence.q_stride() + 64] = std::numeric_limits<float>::quiet_NaN();  // row 50, head 1
    std::vector<float> out = sequence.make_output();
    attend_rows(*level.kernels, sequence.args(0, shape.context, out));
    for (size_t i = 0; i < out.size(); ++i) {
      const bool bad = i / sequence.out_stride() == 50 && i % sequence.out_stride() / 64 == 1;
      if (bad) {
        ASSERT_TRUE(std::isnan(out[i])) << level.name;
      } else {
        ASSERT_EQ(out[i], expected[i]) << level.name;
      }
    }
  }
}

}  // namespace
}  // namespace pagoda
