// Ends that come from outside at any moment, failed steps, and the replay of a recorded log.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "driver.h"

namespace pagoda {
namespace {

using test::Driver;
using test::make_config;
using test::make_prompt;
using test::make_request;

TEST(Cancellation, B45AtEveryPointLeaksNothingAndDisturbsNobody) {
  const SchedulerConfig config = make_config({{0, 24}, {20, 12}}, 3, 16);
  SamplingParams sampling;
  sampling.ignore_eos = true;
  const SequenceRequest healthy = make_request(make_prompt(1, 50), 30, sampling);
  const SequenceRequest victim = make_request(make_prompt(2, 60), 20, sampling);
  const std::vector<int32_t> expected = Driver::solo(config, healthy)[0].ids;
  enum Point { kBeforePlan, kBeforeExecute, kBeforeCommit, kNumPoints };
  for (int32_t at_step = 0; at_step < 30; ++at_step) {
    for (int point = 0; point < kNumPoints; ++point) {
      Driver driver(config);
      const SequenceId kept = driver.submit(healthy);
      const SequenceId cancelled = driver.submit(victim);
      const auto cancel_at = [&](int p) {
        if (driver.num_steps() != at_step || p != point) return;
        const size_t tokens_before = driver.outputs()[cancelled].ids.size();
        EXPECT_EQ(driver.scheduler().cancel(cancelled), tokens_before < 20);
        EXPECT_FALSE(driver.scheduler().cancel(cancelled));
      };
      while (true) {
        cancel_at(kBeforePlan);
        if (!driver.plan()) break;
        cancel_at(kBeforeExecute);
        driver.execute();
        cancel_at(kBeforeCommit);
        const size_t tokens_before = driver.outputs()[cancelled].ids.size();
        const bool is_gone = driver.num_steps() >= at_step;
        driver.commit();
        if (is_gone) {
          EXPECT_EQ(driver.outputs()[cancelled].ids.size(), tokens_before) << "a token after the cancel";
        }
      }
      driver.check_nothing_held();
      EXPECT_EQ(driver.outputs()[kept].ids, expected);
    }
  }
}

TEST(Cancellation, WhileWaitingAndUnknownIds) {
  Driver driver(make_config({{0, 64}}, 1));
  driver.submit(make_request(make_prompt(1, 10), 3));
  const SequenceId waiting = driver.submit(make_request(make_prompt(2, 10), 3));
  driver.step();
  EXPECT_TRUE(driver.scheduler().cancel(waiting));
  EXPECT_FALSE(driver.scheduler().preempt(waiting));
  EXPECT_FALSE(driver.scheduler().cancel(987654));
  driver.drain();
  EXPECT_TRUE(driver.outputs()[waiting].ids.empty());
}

TEST(Cancellation, EverythingAtOnceThenTheSlotsWorkAgain) {
  Driver driver(make_config({{0, 64}}, 4));
  std::vector<SequenceId> ids;
  for (int i = 0; i < 10; ++i) ids.push_back(driver.submit(make_request(make_prompt(i, 30), 50)));
  ASSERT_TRUE(driver.plan());
  driver.execute();
  for (const SequenceId id : ids) EXPECT_TRUE(driver.scheduler().cancel(id));
  driver.commit();
  EXPECT_TRUE(driver.last_events().empty());
  driver.check_nothing_held();
  EXPECT_FALSE(driver.plan());
  const SequenceId next = driver.submit(make_request(make_prompt(99, 30), 3));
  driver.drain();
  EXPECT_FALSE(driver.outputs()[next].ids.empty());
}

TEST(Cancellation, AFailedStepEndsItsSequencesOnly) {
  Driver driver(make_config({{0, 64}}, 2));
  const SequenceId a = driver.submit(make_request(make_prompt(1, 30), 5));
  const SequenceId b = driver.submit(make_request(make_prompt(2, 30), 5));
  const SequenceId waiting = driver.submit(make_request(make_prompt(3, 30), 5));
  driver.step();
  ASSERT_TRUE(driver.plan());
  driver.scheduler().cancel(b);
  std::vector<SequenceEvent> events;
  driver.scheduler().abandon(driver.last_plan(), events);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].sequence_id, a);
  EXPECT_EQ(events[0].finish, FinishReason::kError);
  EXPECT_EQ(events[0].token_id, -1);
  driver.drain();
  EXPECT_NE(driver.outputs()[waiting].finish, FinishReason::kNone);
}

// Every field of a plan, so that two logs are equal exactly when the plans are.
void append_plan(const StepPlan& plan, std::string& log) {
  const auto add = [&log](int64_t value) { log += std::to_string(value) + ","; };
  add(static_cast<int64_t>(plan.step_id));
  for (const int32_t slot : plan.ended_slots) add(slot);
  log += "|";
  for (const SequenceStart& s : plan.starts) {
    for (const int32_t v : {s.slot, s.choice_idx, s.num_prompt_tokens}) add(v);
    for (const int32_t token : s.tokens) add(token);
  }
  log += "|";
  for (const BlockTableDelta& d : plan.deltas) {
    for (const int32_t v : {d.slot, d.group, d.first_block, d.num_blocks, d.ids_begin}) add(v);
  }
  for (const int32_t id : plan.block_ids) add(id);
  log += "|";
  for (const StepEntry& e : plan.entries) {
    for (const int32_t v :
         {e.slot, e.first_position, e.token_begin, e.num_tokens, int32_t{e.is_sampled}, e.num_prompt_rows}) {
      add(v);
    }
  }
  for (const int32_t token : plan.tokens) add(token);
  log += "\n";
}

// The inputs of a run, recorded, and a scheduler fed with them and nothing else.
TEST(Replay, ARecordedLogGivesTheSamePlans) {
  using Call = std::function<void(Scheduler&, StepPlan&)>;
  const SchedulerConfig config = make_config({{0, 30}, {24, 20}}, 4, 24);
  std::vector<Call> calls;
  std::string recorded;
  Driver driver(config);
  uint64_t state = 1;
  const auto pick = [&state](uint64_t n) { return static_cast<int32_t>((state = mix64(state)) % n); };
  for (int i = 0; i < 600; ++i) {
    if (i < 400 && pick(6) == 0) {
      SamplingParams sampling;
      sampling.num_choices = 1 + pick(3);
      const SequenceRequest request =
          make_request(make_prompt(static_cast<uint64_t>(pick(3)), 1 + pick(150)), 1 + pick(100), sampling);
      driver.submit(request);
      calls.emplace_back([request](Scheduler& s, StepPlan&) { EXPECT_TRUE(s.submit(request).ok()); });
    }
    if (pick(10) == 0) {
      const SequenceId id = 1 + pick(80);
      driver.scheduler().cancel(id);
      calls.emplace_back([id](Scheduler& s, StepPlan&) { s.cancel(id); });
    }
    const int32_t budget = 1 + pick(40);
    const int64_t now_us = driver.num_steps();
    calls.emplace_back([now_us, budget](Scheduler& s, StepPlan& plan) { s.plan(now_us, budget, plan); });
    if (!driver.plan(budget)) continue;
    append_plan(driver.last_plan(), recorded);
    driver.execute_and_commit();
    StepResult result;
    for (const SequenceEvent& event : driver.last_events()) result.outcomes.push_back({event.token_id, {}, {}});
    calls.emplace_back([result](Scheduler& s, StepPlan& plan) {
      StepResult copy = result;
      std::vector<SequenceEvent> events;
      s.commit(plan, copy, events);
    });
  }
  ASSERT_GT(driver.scheduler().num_preemptions(), 0);

  Result<std::unique_ptr<Scheduler>> replayed = Scheduler::create(config);
  ASSERT_TRUE(replayed.ok());
  StepPlan plan;
  std::string log;
  uint64_t last_step = 0;
  for (const Call& call : calls) {
    call(**replayed, plan);
    if (plan.step_id == last_step || plan.empty()) continue;
    last_step = plan.step_id;
    append_plan(plan, log);
  }
  EXPECT_EQ(log, recorded);
}

}  // namespace
}  // namespace pagoda
