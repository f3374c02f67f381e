// No room: preemption by recomputation, admission, and the proof by exhaustion that every mix drains.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "driver.h"

namespace pagoda {
namespace {

using test::Driver;
using test::make_config;
using test::make_prompt;
using test::make_request;
using test::Output;

SamplingParams exact_length(uint64_t seed = 0) {
  SamplingParams sampling;
  sampling.ignore_eos = true;
  sampling.seed = seed;
  return sampling;
}

TEST(Preemption, B19RecomputationChangesNoTokenAndRepeatsNone) {
  for (const uint64_t seed : {0, 7}) {
    for (const bool enable_prefix_cache : {false, true}) {
      SchedulerConfig config = make_config({{0, 10}}, 4, 128);
      config.enable_prefix_cache = enable_prefix_cache;
      Driver driver(config);
      std::vector<std::pair<SequenceId, SequenceRequest>> requests;
      for (const uint64_t prompt : {1, 2}) {
        const SequenceRequest request = make_request(make_prompt(prompt, 32), 96, exact_length(seed));
        requests.emplace_back(driver.submit(request), request);
      }
      int32_t restarts = 0;
      int32_t num_forced[2] = {0, 0};
      for (int i = 1; driver.step(); ++i) {
        for (const SequenceStart& start : driver.last_plan().starts) {
          EXPECT_EQ(start.num_prompt_tokens, 32) << "penalties would take output for prompt";
          restarts += start.tokens.size() > 32 ? 1 : 0;
        }
        const int which = i % 2;
        if (i % 11 == 0 && driver.scheduler().preempt(requests[which].first)) ++num_forced[which];
      }
      driver.check_nothing_held();
      EXPECT_GE(num_forced[0], 3);
      EXPECT_GE(num_forced[1], 3);
      EXPECT_GE(restarts, 6);
      for (const auto& [id, request] : requests) {
        const Output& out = driver.outputs()[id];
        EXPECT_EQ(out.ids.size(), 96u);
        EXPECT_EQ(out.num_prompt, 32);
        EXPECT_EQ(out.finish, FinishReason::kLength);
        EXPECT_EQ(out.ids, Driver::solo(config, request)[0].ids);
      }
    }
  }
}

TEST(Preemption, B19PoolPressureAlonePreemptsTheLatest) {
  const SchedulerConfig config = make_config({{0, 10}}, 4, 128);
  Driver driver(config);
  const SequenceId first = driver.submit(make_request(make_prompt(1, 32), 96, exact_length()));
  const SequenceId second = driver.submit(make_request(make_prompt(2, 32), 96, exact_length()));
  while (driver.outputs()[first].finish == FinishReason::kNone) ASSERT_TRUE(driver.step());
  EXPECT_EQ(driver.num_steps(), 96) << "the oldest sequence lost a step";
  EXPECT_GE(driver.scheduler().num_preemptions(), 1);
  driver.drain();
  EXPECT_EQ(driver.outputs()[second].ids.size(), 96u);
}

TEST(Preemption, B20TwoPromptsDoNotShareOutAPoolForOne) {
  SchedulerConfig config = make_config({{0, 32}}, 4, 128);
  config.max_step_tokens = 512;  // budget for both: only the blocks that a still needs keep b out
  Driver driver(config);
  const SequenceId a = driver.submit(make_request(make_prompt(1, 400), 10, exact_length()));
  const SequenceId b = driver.submit(make_request(make_prompt(2, 300), 10, exact_length()));
  driver.step();
  EXPECT_EQ(driver.scheduler().num_running(), 1);
  driver.drain(50);
  EXPECT_EQ(driver.scheduler().num_preemptions(), 0) << "admission let in what did not fit";
  EXPECT_EQ(driver.outputs()[a].ids.size(), 10u);
  EXPECT_EQ(driver.outputs()[b].ids.size(), 10u);
}

TEST(Preemption, HeadOfTheQueueIsNotOvertaken) {
  Driver driver(make_config({{0, 32}}, 4, 128));
  driver.submit(make_request(make_prompt(1, 400), 10, exact_length()));
  const SequenceId big = driver.submit(make_request(make_prompt(2, 300), 10, exact_length()));
  const SequenceId small = driver.submit(make_request(make_prompt(3, 10), 2, exact_length()));
  while (driver.outputs()[big].ids.empty()) {
    EXPECT_TRUE(driver.outputs()[small].ids.empty());
    ASSERT_TRUE(driver.step());
  }
  driver.drain();
}

// One random mix: small pools, random groups, chunks, budgets, arrivals, choices, cancels and forced preemptions.
class Mix {
 public:
  explicit Mix(uint64_t seed) : seed_(seed), config_(random_config()), driver_(config_) {}

  void run(bool compare_with_solo) {
    int32_t to_submit = pick(1, 12);
    const bool has_disturbances = pick(0, 1) == 0;
    for (int32_t i = 0; i < 20000; ++i) {
      while (to_submit > 0 && pick(0, 2) == 0) {
        submit();
        --to_submit;
      }
      if (has_disturbances) disturb();
      if (!driver_.scheduler().has_work()) {
        if (to_submit == 0) break;
        continue;
      }
      ASSERT_TRUE(driver_.plan(pick(0, 3) == 0 ? pick(1, 9) : 1 << 20)) << "seed " << seed_;
      if (has_disturbances) disturb();
      driver_.execute_and_commit();
    }
    ASSERT_FALSE(driver_.scheduler().has_work()) << "not drained, seed " << seed_;
    driver_.check_nothing_held();
    check_outputs(compare_with_solo);
  }

  bool has_failed() const { return ::testing::Test::HasFailure(); }
  int64_t num_preemptions_by_pressure() { return driver_.scheduler().num_preemptions() - num_forced_; }
  int64_t num_accepted() const { return static_cast<int64_t>(submitted_.size()); }

 private:
  struct Submitted {
    SequenceRequest request;
    SequenceId first_id = 0;
    std::set<int32_t> cancelled;  // choices
  };

  int32_t pick(int32_t low, int32_t high) {
    state_ = mix64(state_ ^ seed_);
    return low + static_cast<int32_t>(state_ % static_cast<uint64_t>(high - low + 1));
  }

  SchedulerConfig random_config() {
    SchedulerConfig config;
    config.max_batch = pick(1, 8);
    config.prefill_chunk = pick(1, 30);
    config.max_step_tokens = config.max_batch + pick(0, 30);
    config.max_context = pick(10, 120);
    config.kv.block_tokens = pick(1, 5);
    const int32_t num_groups = pick(1, 2);
    for (int32_t g = 0; g < num_groups; ++g) {
      const int32_t window = pick(0, 1) == 0 ? 0 : pick(1, 20);
      config.kv.groups.push_back({window, pick(4, 24)});
    }
    max_prompt_ = std::min(60, config.max_context - 1);
    for (const KvGroupConfig& g : config.kv.groups)
      max_prompt_ = std::min(max_prompt_, g.num_blocks * config.kv.block_tokens);
    config.enable_prefix_cache = pick(0, 3) != 0;
    config.end_of_generation_ids = {test::kEnd};
    return config;
  }

  void submit() {
    SamplingParams sampling;
    sampling.seed = static_cast<uint64_t>(pick(0, 3));
    sampling.num_choices = pick(0, 3) == 0 ? pick(1, 4) : 1;
    sampling.num_prompt_logprobs = pick(0, 4) == 0 ? 0 : -1;
    sampling.ignore_eos = pick(0, 1) == 0;
    if (pick(0, 4) == 0) sampling.stop = {"never found"};
    const int32_t longest = pick(0, 1) == 0 ? max_prompt_ : std::min(max_prompt_, 8);  // short ones grow most
    SequenceRequest request =
        make_request(make_prompt(static_cast<uint64_t>(pick(0, 2)), pick(1, longest)), pick(0, 80), sampling);
    Result<SequenceId> id = driver_.scheduler().submit(request);
    if (id.ok()) submitted_.push_back({request, *id, {}});
  }

  void disturb() {
    if (submitted_.empty() || pick(0, 9) != 0) return;
    Submitted& s = submitted_[pick(0, static_cast<int32_t>(submitted_.size()) - 1)];
    const int32_t choice = pick(0, s.request.sampling->num_choices - 1);
    if (pick(0, 2) != 0) {
      num_forced_ += driver_.scheduler().preempt(s.first_id + choice) ? 1 : 0;
    } else if (driver_.scheduler().cancel(s.first_id + choice)) {
      s.cancelled.insert(choice);
    }
  }

  void check_outputs(bool compare_with_solo) {
    for (const Submitted& s : submitted_) {
      const std::vector<Output> solo = compare_with_solo ? Driver::solo(config_, s.request) : std::vector<Output>();
      for (int32_t c = 0; c < s.request.sampling->num_choices; ++c) {
        if (s.cancelled.contains(c)) continue;
        const Output& out = driver_.outputs()[s.first_id + c];
        EXPECT_NE(out.finish, FinishReason::kNone) << "seed " << seed_;
        if (c == 0 && s.request.sampling->num_prompt_logprobs >= 0) check_scored(s.request.prompt_ids, out);
        if (!compare_with_solo) continue;
        EXPECT_EQ(out.ids, solo[c].ids) << "seed " << seed_ << " choice " << c;
        EXPECT_EQ(out.finish, solo[c].finish);
      }
    }
  }

  void check_scored(const std::vector<int32_t>& prompt, const Output& out) {
    ASSERT_EQ(out.prompt_logprobs.size() + 1, prompt.size()) << "seed " << seed_;
    for (size_t i = 1; i < prompt.size(); ++i) EXPECT_EQ(out.prompt_logprobs[i - 1].token.id, prompt[i]);
  }

  const uint64_t seed_;
  int32_t max_prompt_ = 1;
  uint64_t state_ = 1;
  int64_t num_forced_ = 0;
  const SchedulerConfig config_;
  Driver driver_;
  std::vector<Submitted> submitted_;
};

TEST(Preemption, B20EveryOfTenThousandMixesDrains) {
  int64_t num_preemptions = 0;
  int64_t num_accepted = 0;
  for (uint64_t seed = 1; seed <= 10000; ++seed) {
    Mix mix(seed);
    mix.run(seed % 2 == 0);
    ASSERT_FALSE(mix.has_failed()) << "seed " << seed;
    num_preemptions += mix.num_preemptions_by_pressure();
    num_accepted += mix.num_accepted();
  }
  EXPECT_GT(num_preemptions, 5000) << "the pools are too large to test anything";
  EXPECT_GT(num_accepted, 20000) << "the pools are too small to test anything";
}

}  // namespace
}  // namespace pagoda
