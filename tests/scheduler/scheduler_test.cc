#include "scheduler/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>

#include "driver.h"

namespace pagoda {
namespace {

using test::Driver;
using test::kEnd;
using test::make_config;
using test::make_prompt;
using test::make_request;
using test::Output;

SamplingParams ignore_eos() {
  SamplingParams sampling;
  sampling.ignore_eos = true;
  return sampling;
}

TEST(Scheduler, OneRequestGetsExactlyItsTokens) {
  Driver driver(make_config({{0, 64}}));
  const SequenceId id = driver.submit(make_request(make_prompt(1, 40), 20, ignore_eos()));
  driver.drain();
  const Output& out = driver.outputs()[id];
  EXPECT_EQ(out.ids.size(), 20u);
  EXPECT_EQ(out.finish, FinishReason::kLength);
  EXPECT_EQ(out.num_prompt, 40);
  EXPECT_EQ(driver.num_steps(), 20);  // the prompt's step samples the first token
}

TEST(Scheduler, ChunkSizesGiveTheSameTokens) {
  const SequenceRequest request = make_request(make_prompt(2, 150), 30, ignore_eos());
  for (const std::vector<KvGroupConfig>& groups :
       {std::vector<KvGroupConfig>{{0, 32}}, std::vector<KvGroupConfig>{{0, 32}, {40, 16}}}) {
    const std::vector<Output> whole = Driver::solo(make_config(groups, 4, 512), request);
    for (const int32_t chunk : {1, 7, 64}) {
      EXPECT_EQ(Driver::solo(make_config(groups, 4, chunk), request)[0].ids, whole[0].ids) << "chunk " << chunk;
    }
  }
}

TEST(Scheduler, DecodeIsServedBeforePrefill) {
  SchedulerConfig config = make_config({{0, 256}}, 4, 64);
  config.max_step_tokens = 64;
  Driver driver(config);
  const SequenceId first = driver.submit(make_request(make_prompt(1, 10), 50, ignore_eos()));
  driver.step();
  driver.submit(make_request(make_prompt(2, 1000), 4, ignore_eos()));
  for (size_t i = 2; i <= 20; ++i) {
    driver.step();
    EXPECT_EQ(driver.outputs()[first].ids.size(), i) << "a step passed without a token for the decoding sequence";
  }
  driver.drain();
}

TEST(Scheduler, ManySequencesEqualTheirSoloRuns) {
  const SchedulerConfig config = make_config({{0, 200}}, 8, 32);
  Driver driver(config);
  std::vector<std::pair<SequenceId, SequenceRequest>> requests;
  for (int i = 0; i < 24; ++i) {
    requests.emplace_back(0, make_request(make_prompt(i, 5 + 13 * i % 120), 10 + i));
    requests.back().first = driver.submit(requests.back().second);
  }
  driver.drain();
  for (const auto& [id, request] : requests) {
    const Output solo = Driver::solo(config, request)[0];
    EXPECT_EQ(driver.outputs()[id].ids, solo.ids);
    EXPECT_EQ(driver.outputs()[id].finish, solo.finish);
  }
}

TEST(Scheduler, MaxBatchOneServesInOrderOfArrival) {
  Driver driver(make_config({{0, 16}}, 1));
  const SequenceId first = driver.submit(make_request(make_prompt(1, 8), 5, ignore_eos()));
  const SequenceId second = driver.submit(make_request(make_prompt(2, 8), 5, ignore_eos()));
  for (int i = 0; i < 5; ++i) driver.step();
  EXPECT_EQ(driver.outputs()[first].finish, FinishReason::kLength);
  EXPECT_TRUE(driver.outputs()[second].ids.empty());
  driver.drain();
  EXPECT_EQ(driver.outputs()[second].ids.size(), 5u);
}

TEST(Scheduler, B60ContextLimitsAreNamedWithBothNumbers) {
  SchedulerConfig config = make_config({{0, 64}});
  config.max_context = 64;
  Driver driver(config);
  const SequenceId id = driver.submit(make_request(make_prompt(1, 60), 8, ignore_eos()));
  driver.drain();
  EXPECT_EQ(driver.outputs()[id].ids.size(), 4u);
  EXPECT_EQ(driver.outputs()[id].finish, FinishReason::kLength);
  for (const int32_t length : {64, 65, 70}) {
    const Result<SequenceId> refused = driver.scheduler().submit(make_request(make_prompt(1, length), 8));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
    const std::string message(refused.status().message());
    EXPECT_NE(message.find(std::to_string(length) + " tokens"), std::string::npos) << message;
    EXPECT_NE(message.find("64"), std::string::npos) << message;
  }
}

TEST(Scheduler, B60WhatNeverFitsThePoolIsRefused) {
  Driver driver(make_config({{0, 4}}));  // 64 tokens, and one that needs no block
  const Result<SequenceId> refused = driver.scheduler().submit(make_request(make_prompt(1, 40), 26));
  ASSERT_FALSE(refused.ok());
  const std::string message(refused.status().message());
  EXPECT_NE(message.find("66 tokens"), std::string::npos) << message;
  EXPECT_NE(message.find("holds 65"), std::string::npos) << message;
  const SequenceId exact = driver.submit(make_request(make_prompt(1, 40), 25, ignore_eos()));
  const SequenceId open = driver.submit(make_request(make_prompt(2, 40), 0, ignore_eos()));
  EXPECT_FALSE(driver.scheduler().submit(make_request(make_prompt(2, 65), 0)).ok());
  EXPECT_FALSE(driver.scheduler().submit(make_request({}, 5)).ok());
  driver.drain();
  EXPECT_EQ(driver.outputs()[exact].ids.size(), 25u);
  EXPECT_EQ(driver.outputs()[open].ids.size(), 25u);
}

TEST(Scheduler, EndTokensStopUnlessIgnoredOrTooEarly) {
  // Find a prompt whose output has the end token after a few others.
  for (uint64_t seed = 1;; ++seed) {
    const std::vector<int32_t> prompt = make_prompt(seed, 20);
    const auto all = Driver::solo(make_config({{0, 64}}), make_request(prompt, 60, ignore_eos()))[0].ids;
    const auto end = std::find(all.begin(), all.end(), kEnd);
    if (end == all.end() || end - all.begin() < 3 || std::find(all.begin(), end, *(end - 1)) != end - 1) continue;
    const auto num_before = static_cast<int32_t>(end - all.begin());

    const Output stopped = Driver::solo(make_config({{0, 64}}), make_request(prompt, 60))[0];
    EXPECT_EQ(stopped.finish, FinishReason::kStop);
    EXPECT_EQ(stopped.ids, std::vector<int32_t>(all.begin(), end + 1));

    SamplingParams stop_id = ignore_eos();
    stop_id.stop_ids = {*(end - 1)};
    const Output by_id = Driver::solo(make_config({{0, 64}}), make_request(prompt, 60, stop_id))[0];
    EXPECT_EQ(by_id.finish, FinishReason::kStop);
    EXPECT_EQ(static_cast<int32_t>(by_id.ids.size()), num_before);

    SamplingParams early;
    early.min_tokens = num_before;
    EXPECT_EQ(Driver::solo(make_config({{0, 64}}), make_request(prompt, 60, early))[0].ids, stopped.ids);
    early.min_tokens = num_before + 1;  // what the sampler would have masked is not a stop
    const Output later = Driver::solo(make_config({{0, 64}}), make_request(prompt, 60, early))[0];
    EXPECT_GT(later.ids.size(), stopped.ids.size());

    const Output at_limit = Driver::solo(make_config({{0, 64}}), make_request(prompt, num_before + 1))[0];
    EXPECT_EQ(at_limit.finish, FinishReason::kStop);
    return;
  }
}

TEST(Scheduler, ConfigurationErrorsNameTheField) {
  const auto message_of = [](const SchedulerConfig& config) {
    const auto created = Scheduler::create(config);
    return created.ok() ? std::string() : std::string(created.status().message());
  };
  SchedulerConfig config = make_config({{0, 8}});
  EXPECT_EQ(message_of(config), "");
  config.max_batch = 0;
  EXPECT_NE(message_of(config).find("max_batch"), std::string::npos);
  config = make_config({{0, 8}});
  config.max_step_tokens = 3;
  EXPECT_NE(message_of(config).find("max_step_tokens"), std::string::npos);
  config = make_config({{0, 8}});
  config.policy = "lottery";
  EXPECT_NE(message_of(config).find("fcfs"), std::string::npos);
  EXPECT_NE(message_of(make_config({})).find("groups"), std::string::npos);
  EXPECT_NE(message_of(make_config({{0, 0}})).find("num_blocks"), std::string::npos);
  EXPECT_NE(message_of(make_config({{-1, 8}})).find("window"), std::string::npos);
}

}  // namespace
}  // namespace pagoda
