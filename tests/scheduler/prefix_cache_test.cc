// Prefix hits as requests see them: counts, namespaces, choices, prompt logprobs, stops, windows.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "driver.h"

namespace pagoda {
namespace {

using test::Driver;
using test::make_config;
using test::make_prompt;
using test::make_request;
using test::Output;

SamplingParams exact_length() {
  SamplingParams sampling;
  sampling.ignore_eos = true;
  return sampling;
}

SequenceId run(Driver& driver, const SequenceRequest& request) {
  const SequenceId id = driver.submit(request);
  driver.drain();
  return id;
}

int32_t cached_tokens(Driver& driver, const SequenceRequest& request) {
  return driver.outputs()[run(driver, request)].num_cached;
}

std::vector<int32_t> concat(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(PrefixCache, B15NamespacesNeverShare) {
  Driver driver(make_config({{0, 64}}));
  SequenceRequest a = make_request(make_prompt(1, 40), 4);
  SequenceRequest b = a;
  a.cache_namespace = "X";
  EXPECT_EQ(cached_tokens(driver, a), 0);
  EXPECT_EQ(cached_tokens(driver, b), 0);
  b.cache_namespace = std::string("X\0", 2);
  EXPECT_EQ(cached_tokens(driver, b), 0);
  EXPECT_EQ(cached_tokens(driver, a), 32);
  EXPECT_EQ(cached_tokens(driver, b), 32);
}

TEST(PrefixCache, B17ThirdRequestFindsTheFirst) {
  // 289 = 18 blocks and a token: all that need not be computed is found, whatever ran between and in whichever slot.
  Driver driver(make_config({{0, 128}}, 2, 512));
  const SequenceRequest a = make_request(make_prompt(1, 289), 8, exact_length());
  const SequenceId first = run(driver, a);
  run(driver, make_request(make_prompt(2, 300), 8, exact_length()));
  const SequenceId third = run(driver, a);
  EXPECT_EQ(driver.outputs()[third].num_cached, 288);
  EXPECT_EQ(driver.outputs()[third].ids, driver.outputs()[first].ids);
}

TEST(PrefixCache, AtLeastOneTokenIsComputed) {
  Driver driver(make_config({{0, 64}}));
  const SequenceRequest request = make_request(make_prompt(1, 48), 4, exact_length());
  const SequenceId first = run(driver, request);
  const SequenceId again = run(driver, request);
  EXPECT_EQ(driver.outputs()[again].num_cached, 32);
  EXPECT_EQ(driver.outputs()[again].ids, driver.outputs()[first].ids);
  EXPECT_EQ(cached_tokens(driver, make_request(make_prompt(1, 15), 2)), 0);
  EXPECT_EQ(cached_tokens(driver, make_request(make_prompt(1, 1), 2)), 0);
}

TEST(PrefixCache, NextTurnFindsTheAnswer) {
  Driver driver(make_config({{0, 64}}));
  const std::vector<int32_t> prompt = make_prompt(1, 40);
  const SequenceId id = run(driver, make_request(prompt, 30, exact_length()));
  const std::vector<int32_t> next = concat(concat(prompt, driver.outputs()[id].ids), make_prompt(9, 10));
  // 69 tokens were computed: the last one sampled never was.
  EXPECT_EQ(cached_tokens(driver, make_request(next, 2)), 64);
}

TEST(PrefixCache, DisabledMeansNoHit) {
  SchedulerConfig config = make_config({{0, 64}});
  config.enable_prefix_cache = false;
  Driver driver(config);
  SamplingParams sampling;
  sampling.num_choices = 2;
  const SequenceRequest request = make_request(make_prompt(1, 100), 4, sampling);
  run(driver, request);
  EXPECT_EQ(cached_tokens(driver, request), 0);
  EXPECT_EQ(driver.scheduler().kv().pool(0).num_free(), 64);
}

TEST(PrefixCache, EvictionForgetsTheOldestFirst) {
  Driver driver(make_config({{0, 12}}));
  const SequenceRequest a = make_request(make_prompt(1, 65), 1, exact_length());
  const SequenceRequest b = make_request(make_prompt(2, 65), 1, exact_length());
  const SequenceRequest c = make_request(make_prompt(3, 65), 1, exact_length());
  run(driver, a);
  run(driver, b);
  EXPECT_EQ(cached_tokens(driver, a), 64);  // makes b the oldest
  run(driver, c);                           // takes 4 free blocks and one of b, from its end
  EXPECT_EQ(cached_tokens(driver, a), 64);
  EXPECT_EQ(cached_tokens(driver, b), 48);
}

TEST(PrefixCache, WhatFollowsAStopStringIsNotPublished) {
  SamplingParams sampling = exact_length();
  sampling.stop = {"found late"};
  const std::vector<int32_t> prompt = make_prompt(1, 20);
  for (const int32_t num_kept : {20, 33, 47, 48, 60}) {
    Driver driver(make_config({{0, 64}}));
    const SequenceId id = driver.submit(make_request(prompt, 100, sampling));
    while (driver.outputs()[id].ids.size() < 60) ASSERT_TRUE(driver.step());
    EXPECT_TRUE(driver.scheduler().finish(id, num_kept));
    EXPECT_FALSE(driver.scheduler().finish(id, num_kept));
    driver.check_nothing_held();
    const std::vector<int32_t> next = concat(prompt, driver.outputs()[id].ids);
    EXPECT_EQ(cached_tokens(driver, make_request(next, 1)), num_kept / 16 * 16) << num_kept;
  }
}

TEST(PrefixCache, ChoicesShareThePrompt) {
  for (int32_t n = 1; n <= 8; ++n) {
    SamplingParams sampling = exact_length();
    sampling.num_choices = n;
    sampling.seed = 5;
    const SequenceRequest request = make_request(make_prompt(1, 100), 12, sampling);
    Driver driver(make_config({{0, 64}}, 8, 64));
    const SequenceId id = driver.submit(request);
    driver.step();
    EXPECT_EQ(driver.scheduler().num_running(), 1) << "a choice began before the shared prompt was there";
    driver.drain();
    for (int32_t c = 0; c < n; ++c) {
      const Output& out = driver.outputs()[id + c];
      EXPECT_EQ(out.ids.size(), 12u);
      EXPECT_EQ(out.num_cached, c == 0 ? 0 : 96);
      if (c > 0) {
        EXPECT_NE(out.ids, driver.outputs()[id].ids);
      }
    }
    // In a batch of one, and without a cache, the choices come out the same.
    SchedulerConfig config = make_config({{0, 64}}, 1, 7);
    config.enable_prefix_cache = false;
    const std::vector<Output> plain = Driver::solo(config, request);
    for (int32_t c = 0; c < n; ++c) EXPECT_EQ(plain[c].ids, driver.outputs()[id + c].ids);
  }
}

TEST(PrefixCache, CancellingTheFirstChoiceFreesTheOthers) {
  SamplingParams sampling = exact_length();
  sampling.num_choices = 3;
  Driver driver(make_config({{0, 64}}, 4, 16));
  const SequenceId id = driver.submit(make_request(make_prompt(1, 100), 5, sampling));
  driver.step();
  driver.scheduler().cancel(id);
  driver.drain();
  EXPECT_EQ(driver.outputs()[id + 1].ids.size(), 5u);
  EXPECT_EQ(driver.outputs()[id + 2].ids.size(), 5u);
}

TEST(PrefixCache, PromptLogprobsScoreEveryRowOnce) {
  const std::vector<int32_t> prompt = make_prompt(1, 100);
  SamplingParams sampling = exact_length();
  sampling.num_prompt_logprobs = 0;
  const SequenceRequest request = make_request(prompt, 4, sampling);
  const std::vector<Output> solo = Driver::solo(make_config({{0, 64}}, 4, 512), request);
  ASSERT_EQ(solo[0].prompt_logprobs.size(), 99u);
  for (const int32_t chunk : {1, 7, 64}) {
    Driver driver(make_config({{0, 64}}, 4, chunk));
    run(driver, make_request(prompt, 4, exact_length()));  // fills the cache
    const SequenceId id = driver.submit(request);
    for (int i = 0; driver.step(); ++i) {
      if (i % 3 == 0 && i < 12) driver.scheduler().preempt(id);
    }
    const Output& out = driver.outputs()[id];
    EXPECT_EQ(out.num_cached, 0) << "cached rows have no logits";
    EXPECT_EQ(out.ids, solo[0].ids);
    ASSERT_EQ(out.prompt_logprobs.size(), 99u);
    for (size_t i = 0; i < 99; ++i) {
      EXPECT_EQ(out.prompt_logprobs[i].token.id, prompt[i + 1]);
      EXPECT_EQ(out.prompt_logprobs[i].token.logprob, solo[0].prompt_logprobs[i].token.logprob);
    }
  }
}

TEST(PrefixCache, WindowedGroupsKeepMemoryFlat) {
  // Window 40 and chunk 16: 55 tokens in view touch at most 5 blocks, for any length of sequence.
  SchedulerConfig config = make_config({{0, 128}, {40, 5}}, 1, 16);
  Driver driver(config);
  const SequenceRequest request = make_request(make_prompt(1, 1000), 500, exact_length());
  const SequenceId id = driver.submit(request);
  while (driver.step()) EXPECT_LE(driver.scheduler().kv().pool(1).num_held(), 5);
  EXPECT_EQ(driver.outputs()[id].ids.size(), 500u);
  const std::vector<Output> roomy = Driver::solo(make_config({{0, 128}, {40, 200}}, 4, 512), request);
  EXPECT_EQ(driver.outputs()[id].ids, roomy[0].ids);
}

TEST(PrefixCache, WindowedGroupsNeedOnlyTheBlocksInView) {
  // Both groups: a hit ends where the full group has everything and the windowed one its last blocks.
  Driver driver(make_config({{0, 128}, {33, 8}}, 1, 32));
  const std::vector<int32_t> prompt = make_prompt(1, 400);
  run(driver, make_request(prompt, 1, exact_length()));
  const std::vector<int32_t> longer = concat(prompt, make_prompt(7, 20));
  EXPECT_EQ(cached_tokens(driver, make_request(longer, 1)), 400);
  // The windowed blocks around token 200 were used again long ago, so nothing there can be resumed.
  const std::vector<int32_t> forked = concat(make_prompt(1, 200), make_prompt(8, 20));
  EXPECT_EQ(cached_tokens(driver, make_request(forked, 1)), 0);
}

}  // namespace
}  // namespace pagoda
