// Steps in which nobody arrives or leaves allocate next to nothing.

#include <gtest/gtest.h>

#include "counting_new.h"
#include "driver.h"

namespace pagoda {
namespace {

TEST(Allocation, SteadyDecodeReusesItsMemory) {
  constexpr int32_t kSequences = 8;
  constexpr int32_t kSteps = 512;
  test::Driver driver(test::make_config({{0, 600}, {64, 100}}, kSequences, 64));
  SamplingParams sampling;
  sampling.ignore_eos = true;
  for (int32_t i = 0; i < kSequences; ++i) {
    driver.submit(test::make_request(test::make_prompt(i, 50), kSteps + 100, sampling));
  }
  Scheduler& scheduler = driver.scheduler();
  for (int32_t i = 0; i < 40; ++i) driver.step();  // all decode, and the buffers have their sizes

  StepPlan plan;
  StepResult result;
  std::vector<SequenceEvent> events;
  int64_t in_plan = 0;
  int64_t in_commit = 0;
  for (int32_t i = 0; i < kSteps; ++i) {
    const int64_t start = test::num_allocations();
    scheduler.plan(i, 64, plan);
    in_plan += test::num_allocations() - start;
    ASSERT_EQ(plan.entries.size(), size_t{kSequences});
    result.outcomes.assign(plan.entries.size(), {});
    for (StepOutcome& outcome : result.outcomes) outcome.sampled_id = 5 + i % 64;
    events.clear();
    const int64_t middle = test::num_allocations();
    scheduler.commit(plan, result, events);
    in_commit += test::num_allocations() - middle;
  }
  // plan: a table of each sequence and group doubles at most 5 times in 512 tokens, and the plan's own buffers grow
  // once.
  EXPECT_LE(in_plan, kSequences * 2 * 5 + 20);
  // commit: a node of the prefix index (itself, its key, its place) for every 16 tokens, and tokens that double.
  EXPECT_LE(in_commit, kSequences * (kSteps / 16 * 3 + 8) + 100);
}

}  // namespace
}  // namespace pagoda
