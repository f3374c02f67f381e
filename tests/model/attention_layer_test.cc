#include "model/layers/attention.h"

#include <cmath>
#include <memory>

#include "../kernels/attention_fixture.h"

namespace pagoda {
namespace {

struct StepPart {
  int32_t context;  // positions after the step
  int32_t num_rows;
};

/// A step of several sequences, each with its own cache.
class AttentionLayer : public testing::Test {
 protected:
  void fill(const AttentionShape& base, std::vector<StepPart> parts) {
    parts_ = std::move(parts);
    uint32_t seed = 1;
    for (const StepPart& part : parts_) {
      AttentionShape shape = base;
      shape.context = part.context;
      sequences_.push_back(std::make_unique<PagedSequence>(shape, seed++));
      sequences_.back()->append(kernels(), 0, part.context);
    }
    limits_ = {.max_rows = 0,
               .max_sequences = static_cast<int32_t>(parts_.size()),
               .max_context = 0,
               .num_heads = sequences_[0]->num_heads()};
    for (const StepPart& part : parts_) {
      limits_.max_rows += part.num_rows;
      limits_.max_context = std::max(limits_.max_context, part.context);
    }
  }

  static const AttentionKernels& kernels() { return *attention_levels().back().kernels; }

  std::vector<AttentionArgs> arguments(std::vector<std::vector<float>>& outputs) {
    std::vector<AttentionArgs> args;
    outputs.clear();
    outputs.reserve(parts_.size());
    for (size_t i = 0; i < parts_.size(); ++i) {
      outputs.push_back(sequences_[i]->make_output());
      args.push_back(sequences_[i]->args(parts_[i].context - parts_[i].num_rows, parts_[i].context, outputs.back()));
    }
    return args;
  }

  /// Every sequence by itself, one item per KV head.
  std::vector<std::vector<float>> alone(AttentionKind kind) {
    std::vector<std::vector<float>> outputs;
    for (const AttentionArgs& args : arguments(outputs)) {
      if (kind == AttentionKind::kFlash) {
        attend_rows(kernels(), args);
        continue;
      }
      AlignedBuffer scratch = AlignedBuffer::create(kernels().naive_scratch_bytes(args, limits_.max_context)).value();
      for (int32_t h = 0; h < args.layout.num_kv_heads; ++h) {
        kernels().attend_naive(args, {h, 0, args.num_rows}, scratch.data());
      }
    }
    return outputs;
  }

  void expect_same_for_any_team(AttentionKind kind) {
    const auto expected = alone(kind);
    for (const int threads : {1, 2, 3}) {
      auto team = ThreadTeam::create(threads).value();
      auto runner = AttentionRunner::create(kernels(), *team, kind, sequences_[0]->layout(), limits_).value();
      for (int repeat = 0; repeat < 3; ++repeat) {
        std::vector<std::vector<float>> outputs;
        const std::vector<AttentionArgs> args = arguments(outputs);
        runner.run(args);
        for (size_t i = 0; i < outputs.size(); ++i) {
          EXPECT_EQ(count_different(outputs[i], expected[i]), 0u) << threads << " threads, sequence " << i;
        }
      }
    }
  }

  ScopedFlushDenormals flush_;
  std::vector<StepPart> parts_;
  std::vector<std::unique_ptr<PagedSequence>> sequences_;
  AttentionLimits limits_;
};

TEST_F(AttentionLayer, OneLongDecodeIsTheSameForAnyNumberOfThreads) {
  fill({.type = KvType::kF16, .num_kv_heads = 1}, {{5000, 1}});
  expect_same_for_any_team(AttentionKind::kFlash);
}

TEST_F(AttentionLayer, MixedStepIsTheSameForAnyNumberOfThreads) {
  for (const KvType type : {KvType::kF16, KvType::kBF16, KvType::kF32}) {
    sequences_.clear();
    fill({.type = type}, {{3000, 1}, {40, 40}, {1, 1}, {900, 200}, {257, 1}, {2100, 5}, {64, 9}});
    expect_same_for_any_team(AttentionKind::kFlash);
  }
}

TEST_F(AttentionLayer, WindowsAreTheSameForAnyNumberOfThreads) {
  fill({.type = KvType::kF16, .group = 2, .window = 700}, {{3000, 1}, {1500, 300}, {2999, 3}});
  expect_same_for_any_team(AttentionKind::kFlash);
}

TEST_F(AttentionLayer, NaiveIsTheSameForAnyNumberOfThreads) {
  fill({.type = KvType::kF16}, {{1000, 1}, {40, 40}, {300, 20}});
  expect_same_for_any_team(AttentionKind::kNaive);
}

TEST_F(AttentionLayer, ManyLongSequencesFitThePartials) {
  fill({.type = KvType::kF32, .group = 1, .num_kv_heads = 2, .key_dim = 16, .value_dim = 16},
       std::vector<StepPart>(24, {2500, 8}));
  expect_same_for_any_team(AttentionKind::kFlash);
}

TEST_F(AttentionLayer, AnEmptyStepDoesNothing) {
  fill({.type = KvType::kF16}, {{20, 1}});
  auto team = ThreadTeam::create(2).value();
  auto runner =
      AttentionRunner::create(kernels(), *team, AttentionKind::kFlash, sequences_[0]->layout(), limits_).value();
  runner.run({});
}

TEST_F(AttentionLayer, BufferGrowsOnlyByPartialsWithContext) {
  const KvLayout layout = {.type = KvType::kF16, .block_tokens = 16, .num_kv_heads = 3, .key_dim = 64, .value_dim = 64};
  const auto bytes = [&](int32_t context, int threads) {
    return AttentionRunner::buffer_bytes(kernels(), layout, {512, 8, context, 9}, threads);
  };
  const uint64_t kv_of_a_layer = 8192 / 16 * layout.block_bytes();
  EXPECT_EQ(bytes(4096, 1), bytes(8192, 1));
  EXPECT_LT(bytes(16384, 2) - bytes(8192, 2), kv_of_a_layer / 8);
}

}  // namespace
}  // namespace pagoda
