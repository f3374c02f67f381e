#include "engine/scripted_executor.h"

#include <gtest/gtest.h>

namespace pagoda {
namespace {

ScriptedExecutor::Options options_with(Script script) {
  ScriptedExecutor::Options options;
  options.kv.block_tokens = 4;
  options.kv.groups = {{.window = 0, .num_blocks = 8}};
  options.max_slots = 2;
  options.vocab_size = 100;
  options.script = std::move(script);
  return options;
}

std::shared_ptr<const SamplingParams> params(int32_t num_logprobs = -1) {
  SamplingParams sampling;
  sampling.num_logprobs = sampling.num_prompt_logprobs = num_logprobs;
  return std::make_shared<const SamplingParams>(sampling);
}

/// Builds a plan piece by piece.
struct PlanBuilder {
  StepPlan plan;

  PlanBuilder& end(int32_t slot) {
    plan.ended_slots.push_back(slot);
    return *this;
  }
  PlanBuilder& start(int32_t slot, const std::vector<int32_t>& tokens, int32_t num_prompt, int32_t num_logprobs = -1) {
    plan.starts.push_back({slot, params(num_logprobs), 0, num_prompt, tokens});
    return *this;
  }
  PlanBuilder& blocks(int32_t slot, int32_t first, const std::vector<int32_t>& ids, int32_t group = 0) {
    plan.deltas.push_back(
        {slot, group, first, static_cast<int32_t>(ids.size()), static_cast<int32_t>(plan.block_ids.size())});
    plan.block_ids.insert(plan.block_ids.end(), ids.begin(), ids.end());
    return *this;
  }
  PlanBuilder& compute(int32_t slot, int32_t position, const std::vector<int32_t>& tokens, bool is_sampled,
                       int32_t num_prompt_rows = 0) {
    plan.entries.push_back({slot, position, static_cast<int32_t>(plan.tokens.size()),
                            static_cast<int32_t>(tokens.size()), is_sampled, num_prompt_rows});
    plan.tokens.insert(plan.tokens.end(), tokens.begin(), tokens.end());
    return *this;
  }
};

struct Harness {
  explicit Harness(Script script) : executor(options_with(std::move(script))) {}
  explicit Harness(ScriptedExecutor::Options options) : executor(std::move(options)) {}

  Status step(PlanBuilder builder) {
    builder.plan.step_id = next_step++;
    return executor.step(builder.plan, result);
  }
  ScriptedExecutor executor;
  StepResult result;
  uint64_t next_step = 1;
};

const Script kScript = make_fixed_script({50, 51, 52});

/// A prompt of six tokens in blocks 0 and 1, computed, first token drawn.
Harness started() {
  Harness run(kScript);
  EXPECT_TRUE(
      run.step(
             PlanBuilder().start(0, {1, 2, 3, 4, 5, 6}, 6).blocks(0, 0, {0, 1}).compute(0, 0, {1, 2, 3, 4, 5, 6}, true))
          .ok());
  return run;
}

TEST(ScriptedExecutor, DrawsFromTheScriptThroughChunksAndSteps) {
  Harness run(kScript);
  ASSERT_TRUE(run.step(PlanBuilder()
                           .start(1, {1, 2, 3, 4, 5, 6}, 6, 2)
                           .blocks(1, 0, {5, 3})
                           .compute(1, 0, {1, 2, 3, 4, 5}, false, 5))
                  .ok());
  EXPECT_EQ(run.result.outcomes[0].sampled_id, -1);
  ASSERT_EQ(run.result.outcomes[0].prompt_logprobs.size(), 5u);
  EXPECT_EQ(run.result.outcomes[0].prompt_logprobs[4].token.id, 6);
  ASSERT_TRUE(run.step(PlanBuilder().compute(1, 5, {6}, true)).ok());
  EXPECT_EQ(run.result.outcomes[0].sampled_id, 50);
  EXPECT_EQ(run.result.outcomes[0].logprobs.token.logprob, ScriptedExecutor::logprob_of(50));
  EXPECT_EQ(run.result.outcomes[0].logprobs.top.size(), 2u);
  ASSERT_TRUE(run.step(PlanBuilder().compute(1, 6, {50}, true)).ok());
  EXPECT_EQ(run.result.outcomes[0].sampled_id, 51);
  EXPECT_EQ(run.executor.plans().size(), 3u);
  EXPECT_TRUE(run.executor.first_violation().ok());
}

TEST(ScriptedExecutor, FailsWhenTold) {
  ScriptedExecutor::Options options = options_with(kScript);
  options.fail_at_call = 2;
  options.failure = resource_exhausted("as the script says");
  Harness run(options);
  const auto first = PlanBuilder().start(0, {1}, 1).blocks(0, 0, {0}).compute(0, 0, {1}, true);
  EXPECT_TRUE(run.step(first).ok());
  EXPECT_EQ(run.step(PlanBuilder().compute(0, 1, {50}, true)).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(run.step(PlanBuilder(first).end(0)).ok());  // the sequence left; the slot is taken again
  EXPECT_TRUE(run.executor.first_violation().ok());
}

TEST(ScriptedExecutor, AComputedPrefixMayBeSharedAndIsComparedByContent) {
  Harness run = started();
  const std::vector<int32_t> equal{1, 2, 3, 4, 9};
  EXPECT_TRUE(run.step(PlanBuilder().start(1, equal, 5).blocks(1, 0, {0, 2}).compute(1, 4, {9}, true)).ok());
  Harness other = started();
  const Status status =
      other.step(PlanBuilder().start(1, {1, 2, 7, 4, 9}, 5).blocks(1, 0, {0, 2}).compute(1, 4, {9}, true));
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("other content at position 2"), std::string_view::npos) << status.to_string();
  EXPECT_EQ(other.executor.first_violation().message(), status.message());
}

TEST(ScriptedExecutor, APrefixThatWasNeverComputedIsRefused) {
  Harness run(kScript);
  EXPECT_FALSE(run.step(PlanBuilder().start(0, {1, 2, 3, 4, 5}, 5).blocks(0, 0, {0, 1}).compute(0, 4, {5}, true)).ok());
}

TEST(ScriptedExecutor, ABlockGivenAwayTooEarlyIsFound) {
  Harness run = started();
  // Slot 1 computes into block 0, which slot 0 still needs: seen in the same step or in slot 0's next.
  const auto steal = PlanBuilder().start(1, {8, 8}, 2).blocks(1, 0, {0}).compute(1, 0, {8, 8}, true);
  EXPECT_FALSE(run.step(PlanBuilder(steal).compute(0, 6, {50}, true)).ok());
  Harness later = started();
  EXPECT_TRUE(later.step(steal).ok());
  EXPECT_FALSE(later.step(PlanBuilder().compute(0, 6, {50}, true)).ok());
}

TEST(ScriptedExecutor, TwoWritersOfOneBlockAreFoundEvenWithEqualTokens) {
  Harness run(kScript);
  EXPECT_FALSE(run.step(PlanBuilder()
                            .start(0, {1, 2}, 2)
                            .start(1, {1, 2}, 2)
                            .blocks(0, 0, {0})
                            .blocks(1, 0, {0})
                            .compute(0, 0, {1, 2}, true)
                            .compute(1, 0, {1, 2}, true))
                   .ok());
}

TEST(ScriptedExecutor, AWindowedGroupNeedsOnlyWhatItsRowsSee) {
  ScriptedExecutor::Options options = options_with(kScript);
  options.kv.groups = {{.window = 3, .num_blocks = 8}};
  Harness run(options);
  const auto prompt = PlanBuilder().start(0, {1, 2, 3, 4, 5, 6}, 6).blocks(0, 0, {0, 1});
  EXPECT_TRUE(run.step(PlanBuilder(prompt).compute(0, 0, {1, 2, 3, 4, 5, 6}, true)).ok());
  // Block 0 holds positions 0..3; the row at position 6 sees 4 and 5.
  EXPECT_TRUE(
      run.step(
             PlanBuilder().start(1, {8, 8}, 2).blocks(1, 0, {0}).compute(1, 0, {8, 8}, true).compute(0, 6, {50}, true))
          .ok());
  // A prefix hit needs no more than the window either.
  Harness hit(options);
  const std::vector<int32_t> eight{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_TRUE(hit.step(PlanBuilder().start(0, eight, 8).blocks(0, 0, {0, 1}).compute(0, 0, eight, true)).ok());
  const std::vector<int32_t> nine{1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_TRUE(hit.step(PlanBuilder().start(1, nine, 9).blocks(1, 1, {1, 2}).compute(1, 8, {9}, true)).ok());
}

TEST(ScriptedExecutor, WrongPlansAreNamed) {
  const std::vector<std::pair<const char*, PlanBuilder>> cases{
      {"ended, but it is empty", PlanBuilder().end(1)},
      {"it is taken", PlanBuilder().start(0, {1}, 1)},
      {"no such slot", PlanBuilder().start(2, {1}, 1)},
      {"prompt tokens", PlanBuilder().start(1, {1}, 2)},
      {"the slot is empty", PlanBuilder().blocks(1, 0, {2})},
      {"no such group", PlanBuilder().blocks(0, 2, {2}, 1)},
      {"no such block", PlanBuilder().blocks(0, 2, {8})},
      {"sent twice", PlanBuilder().blocks(0, 1, {2})},
      {"the slot is empty", PlanBuilder().compute(1, 0, {1}, true)},
      {"not those of the sequence", PlanBuilder().compute(0, 6, {9}, true)},
      {"computes past", PlanBuilder().compute(0, 6, {50, 51}, true)},
      {"draws before the last token", PlanBuilder().compute(0, 5, {6}, true)},
      {"prompt rows", PlanBuilder().compute(0, 5, {6}, false, 1)},
      {"tokens outside the plan", PlanBuilder().compute(0, 6, {}, true)},
      {"a second entry of the slot", PlanBuilder().compute(0, 6, {50}, false).compute(0, 6, {50}, true)},
  };
  for (const auto& [message, builder] : cases) {
    Harness run = started();
    const Status status = run.step(builder);
    EXPECT_EQ(status.code(), StatusCode::kInternal) << message;
    EXPECT_NE(status.message().find(message), std::string_view::npos) << status.to_string();
    EXPECT_FALSE(run.executor.first_violation().ok());
  }
  Harness run(kScript);  // no block for the second half of the prompt
  EXPECT_FALSE(
      run.step(PlanBuilder().start(0, {1, 2, 3, 4, 5}, 5).blocks(0, 0, {0}).compute(0, 0, {1, 2, 3, 4, 5}, true)).ok());
}

TEST(ScriptedExecutor, TheHashScriptDependsOnHistorySeedAndChoice) {
  const Script script = make_hash_script(1000);
  SamplingParams seven;
  seven.seed = 7;
  const SamplingParams zero;
  const std::vector<int32_t> tokens{1, 2, 3};
  const std::vector<int32_t> others{1, 2, 4};
  const int32_t base = script({tokens, 2, &zero, 0});
  EXPECT_EQ(script({tokens, 2, &zero, 0}), base);
  EXPECT_NE(script({others, 2, &zero, 0}), base);
  EXPECT_NE(script({tokens, 2, &seven, 0}), base);
  EXPECT_NE(script({tokens, 2, &zero, 1}), base);
}

}  // namespace
}  // namespace pagoda
