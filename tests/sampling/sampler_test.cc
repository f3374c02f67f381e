#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/cpu.h"
#include "kernels/kernel_table.h"
#include "sampling_testing.h"

namespace pagoda {
namespace {

using namespace sampling_testing;  // NOLINT: the test's own vocabulary

SamplingParams greedy() {
  SamplingParams params;
  params.temperature = 0.0f;
  return params;
}

TEST(Sampler, GreedyTakesTheLowestIdOfATie) {
  EXPECT_EQ(draw_once(greedy(), std::vector<float>{1, 3, 3, 2}, 0), 1);
  EXPECT_EQ(draw_once(greedy(), std::vector<float>{-0.0f, 0.0f}, 0), 0);
  EXPECT_EQ(draw_once(greedy(), std::vector<float>{0.0f, -0.0f}, 0), 0);
  EXPECT_EQ(draw_once(greedy(), std::vector<float>(33, -7.0f), 0), 0);
}

TEST(Sampler, TinyAndHugeTemperaturesStayFinite) {
  const std::vector<float> logits{3e38f, -3e38f, 2.9e38f, -kInf};
  for (const float temperature : {1e-45f, 1e-38f, 1e-6f, 1.0f, 100.0f}) {
    SamplingParams params;
    params.temperature = temperature;
    EXPECT_EQ(draw_once(params, logits, 3), 0) << temperature;
  }
}

TEST(Sampler, MinusInfinityIsNeverDrawn) {
  SamplingParams params;
  params.temperature = 50.0f;
  const std::vector<float> logits{-kInf, 0.0f, -kInf, 0.5f};
  const std::vector<int64_t> counts = histogram(params, logits, 1000);
  ASSERT_EQ(counts.size(), 4u);
  EXPECT_EQ(counts[0] + counts[2], 0);
  params.top_k = 3;  // reaches past the possible ones
  EXPECT_EQ(histogram(params, logits, 1000)[0], 0);
}

TEST(Sampler, UnusableLogitsGiveNoTokenAndAreNotRecorded) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float temperature : {0.0f, 1.0f}) {
    SamplingParams params;
    params.temperature = temperature;
    params.min_tokens = 1;
    SamplerScratch scratch(3);
    SequenceSampler sampler = make_sampler(params, 3, {2});
    for (const std::vector<float>& logits : {std::vector<float>{0, nan, 1},
                                             {0, -nan, 1},
                                             {nan, nan, nan},
                                             {0, kInf, 1},
                                             {-kInf, -kInf, -kInf},
                                             {-kInf, -kInf, 5} /* min_tokens masks the only one left */}) {
      EXPECT_EQ(sampler.sample(logits, 0, scratch, test_kernels()), kNoToken);
    }
    // Still before the first token: the end id is masked.
    EXPECT_EQ(sampler.sample(std::vector<float>{-kInf, 0, 50}, 0, scratch, test_kernels()), 1);
    EXPECT_EQ(sampler.sample(std::vector<float>{-kInf, 0, 50}, 1, scratch, test_kernels()), 2);
  }
}

TEST(Sampler, LogitBiasMovesAndBans) {
  SamplingParams params = greedy();
  params.logit_bias = {{2, 100.0f}};
  EXPECT_EQ(draw_once(params, std::vector<float>{5, 1, 0}, 0), 2);
  params.logit_bias = {{0, -100.0f}};
  EXPECT_EQ(draw_once(params, std::vector<float>{5, 1, 0}, 0), 1);
  params.logit_bias = {{0, -kInf}, {1, -kInf}};
  EXPECT_EQ(draw_once(params, std::vector<float>{5, 1, -200}, 0), 2);
  params.logit_bias.emplace_back(2, -kInf);
  EXPECT_EQ(draw_once(params, std::vector<float>{5, 1, 0}, 0), kNoToken);
}

TEST(Sampler, MinTokensMasksEndAndStopIdsAndNoBiasLiftsIt) {
  SamplingParams params = greedy();
  params.min_tokens = 2;
  params.stop_ids = {3};
  params.logit_bias = {{4, 50.0f}};
  const std::vector<float> logits{0, 1, 2, 9, 8};
  SamplerScratch scratch(5);
  SequenceSampler sampler = make_sampler(params, 5, {4});
  sampler.reset(std::vector<int32_t>{1, 1, 1}, 3);
  EXPECT_EQ(sampler.sample(logits, 3, scratch, test_kernels()), 2);
  EXPECT_EQ(sampler.sample(logits, 4, scratch, test_kernels()), 2);
  EXPECT_EQ(sampler.sample(logits, 5, scratch, test_kernels()), 4);
}

TEST(Sampler, B19AResetWithTheHistorySoFarContinuesAsIfNothingHappened) {
  std::mt19937 rng(11);
  SamplingParams params;
  params.seed = 7;
  params.frequency_penalty = 1.0f;
  params.repetition_penalty = 1.3f;
  params.presence_penalty = 0.5f;
  params.min_tokens = 12;
  const std::vector<int32_t> prompt{3, 1, 4, 1, 5};
  SamplerScratch scratch(24);
  SequenceSampler solo = make_sampler(params, 24, {0, 1});
  SequenceSampler preempted = make_sampler(params, 24, {0, 1});
  solo.reset(prompt, 5);
  preempted.reset(prompt, 5);
  std::vector<int32_t> tokens = prompt;
  for (int step = 0; step < 40; ++step) {
    const std::vector<float> logits = random_logits(rng, 24, 1.5f);
    if (step % 7 == 3) preempted.reset(tokens, 5);
    const auto position = static_cast<int64_t>(tokens.size());
    const int32_t id = solo.sample(logits, position, scratch, test_kernels());
    ASSERT_EQ(preempted.sample(logits, position, scratch, test_kernels()), id) << step;
    tokens.push_back(id);
  }
}

TEST(Sampler, PenaltiesFollowTheSlowReference) {
  std::mt19937 rng(3);
  const auto uniform = [&](float low, float high) { return std::uniform_real_distribution<float>(low, high)(rng); };
  for (int round = 0; round < 200; ++round) {
    SamplingParams params = greedy();
    params.repetition_penalty = round % 4 == 0 ? 1.0f : uniform(0.2f, 3.0f);
    params.frequency_penalty = round % 3 == 0 ? 0.0f : uniform(-2.0f, 2.0f);
    params.presence_penalty = round % 5 == 0 ? 0.0f : uniform(-2.0f, 2.0f);
    params.min_tokens = static_cast<int32_t>(rng() % 6);
    params.stop_ids = {static_cast<int32_t>(rng() % 16)};
    for (int i = 0; i < 3; ++i) params.logit_bias.emplace_back(rng() % 16, uniform(-3.0f, 3.0f));
    const std::vector<int32_t> end_ids{15};
    History history;
    for (int i = 0; i < 6; ++i) history.prompt.push_back(static_cast<int32_t>(rng() % 16));
    SamplerScratch scratch(16);
    SequenceSampler sampler = make_sampler(params, 16, end_ids);
    sampler.reset(history.prompt, 6);
    for (int step = 0; step < 12; ++step) {
      const std::vector<float> logits = random_logits(rng, 16, 2.0f);
      const auto law = slow_law(params, slow_adjust(params, logits, history, end_ids));
      const int32_t id = sampler.sample(logits, 6 + step, scratch, test_kernels());
      ASSERT_EQ(id, law.front().first) << "round " << round << " step " << step;
      history.output.push_back(id);
    }
  }
}

TEST(Sampler, PenaltiesNeverOverflow) {
  SamplingParams params = greedy();
  params.repetition_penalty = 0.001f;
  SamplerScratch scratch(3);
  SequenceSampler sampler = make_sampler(params, 3);
  sampler.reset(std::vector<int32_t>{1, 2}, 2);
  EXPECT_EQ(sampler.sample(std::vector<float>{0, 3e38f, 3e38f}, 2, scratch, test_kernels()), 1);
  params.repetition_penalty = 100.0f;
  SequenceSampler negative = make_sampler(params, 3);
  negative.reset(std::vector<int32_t>{0, 1, 2}, 3);
  EXPECT_EQ(negative.sample(std::vector<float>{-kInf, -3e38f, -3e38f}, 3, scratch, test_kernels()), 1);
}

TEST(Sampler, B21ASeededRequestIgnoresItsCompany) {
  std::mt19937 rng(17);
  std::vector<std::vector<float>> rows;
  for (int i = 0; i < 16; ++i) rows.push_back(random_logits(rng, 100, 1.0f));
  SamplingParams params;
  params.seed = 42;
  params.temperature = 0.8f;
  const auto run = [&](int num_neighbours, uint32_t shuffle) {
    std::mt19937 order_rng(shuffle);
    SamplerScratch scratch(100);  // shared, as between the rows of one thread
    std::vector<SequenceSampler> samplers;
    samplers.push_back(make_sampler(params, 100));
    for (int i = 0; i < num_neighbours; ++i) {
      SamplingParams other;
      other.seed = order_rng();
      other.top_k = static_cast<int32_t>(order_rng() % 50);
      other.top_p = 0.9f;
      samplers.push_back(make_sampler(other, 100));
    }
    std::vector<int32_t> ids;
    std::vector<size_t> order(samplers.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (int position = 0; position < 16; ++position) {
      std::shuffle(order.begin(), order.end(), order_rng);
      for (const size_t who : order) {
        const int32_t id = samplers[who].sample(rows[(position + who) % 16], position, scratch, test_kernels());
        if (who == 0) ids.push_back(id);
      }
    }
    return ids;
  };
  const std::vector<int32_t> alone = run(0, 1);
  for (uint32_t shuffle = 0; shuffle < 20; ++shuffle) EXPECT_EQ(run(1 + shuffle % 8, shuffle), alone);
}

TEST(Sampler, SeedAndChoiceChangeTheDraws) {
  const std::vector<float> logits(1000, 0.0f);
  SamplingParams params;
  SamplingParams other = params;
  other.seed = 1;
  int same_seed = 0;
  int same_choice = 0;
  for (int64_t position = 0; position < 100; ++position) {
    same_seed += draw_once(params, logits, position) == draw_once(other, logits, position);
    same_choice += draw_once(params, logits, position, 0) == draw_once(params, logits, position, 1);
  }
  EXPECT_LT(same_seed, 5);
  EXPECT_LT(same_choice, 5);
}

TEST(Sampler, EveryInstructionSetDrawsTheSameTokensAndLogprobs) {
  std::mt19937 rng(29);
  SamplingParams settings[4];
  settings[1].top_p = 0.9f;
  settings[2].top_k = 40;
  settings[3].min_p = 0.05f;
  settings[3].repetition_penalty = 1.2f;
  for (int round = 0; round < 100; ++round) {
    const std::vector<float> logits = random_logits(rng, 1003, 3.0f);
    SamplingParams& params = settings[round % 4];
    params.temperature = 0.5f + static_cast<float>(round) / 100.0f;
    SamplerScratch scratch(1003);
    int32_t expected = kNoToken;
    TokenLogprobs expected_logprobs;
    for (const Isa isa : kAllIsas) {
      if (isa > detect_isa()) continue;
      const VectorKernels& ops = *kernel_table(isa).vector;
      SequenceSampler sampler = make_sampler(params, 1003);
      sampler.reset(std::vector<int32_t>{1, 2, 3}, 3);
      const int32_t id = sampler.sample(logits, round, scratch, ops);
      const TokenLogprobs logprobs = compute_logprobs(logits, id, 5, ops);
      if (isa == Isa::kReference) {
        expected = id;
        expected_logprobs = logprobs;
      }
      ASSERT_EQ(id, expected) << isa_name(isa);
      ASSERT_EQ(logprobs.token.logprob, expected_logprobs.token.logprob) << isa_name(isa);
      for (size_t i = 0; i < 5; ++i) ASSERT_EQ(logprobs.top[i].logprob, expected_logprobs.top[i].logprob);
    }
  }
}

TEST(Logprobs, B31AreThoseOfTheRawModel) {
  const std::vector<float> logits{1.0f, 2.0f, 0.5f, 2.0f, -kInf};
  const TokenLogprobs entry = compute_logprobs(logits, 0, 3, test_kernels());
  const double log_sum = std::log(std::exp(1.0) + 2 * std::exp(2.0) + std::exp(0.5));
  EXPECT_EQ(entry.token.id, 0);
  EXPECT_NEAR(entry.token.logprob, 1.0 - log_sum, 1e-5);
  ASSERT_EQ(entry.top.size(), 3u);
  EXPECT_EQ(entry.top[0].id, 1);  // ties by lowest id
  EXPECT_EQ(entry.top[1].id, 3);
  EXPECT_EQ(entry.top[2].id, 0);
  EXPECT_NEAR(entry.top[0].logprob, 2.0 - log_sum, 1e-5);
}

TEST(Logprobs, B31AreNotChangedByTheSamplersSettings) {
  std::mt19937 rng(31);
  const std::vector<float> logits = random_logits(rng, 200, 2.0f);
  SamplingParams params;
  params.top_k = 1;
  params.repetition_penalty = 2.0f;
  params.logit_bias = {{7, -kInf}};
  SamplerScratch scratch(200);
  SequenceSampler sampler = make_sampler(params, 200);
  sampler.reset(std::vector<int32_t>{1, 7}, 2);
  const std::vector<float> before = logits;
  const int32_t id = sampler.sample(logits, 2, scratch, test_kernels());
  EXPECT_EQ(logits, before);
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  EXPECT_NEAR(compute_logprobs(logits, id, 0, test_kernels()).token.logprob, logits[id] - std::log(sum), 1e-5);
}

TEST(Logprobs, B31AreAlwaysFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> masked{-kInf, 4.0f, -kInf};
  const TokenLogprobs impossible = compute_logprobs(masked, 0, 5, test_kernels());
  EXPECT_EQ(impossible.token.logprob, kMinLogprob);
  ASSERT_EQ(impossible.top.size(), 1u);  // impossible entries are left out
  EXPECT_EQ(impossible.top[0].id, 1);
  EXPECT_EQ(impossible.top[0].logprob, 0.0f);
  for (const std::vector<float>& bad : {std::vector<float>{nan, 1, 2}, {kInf, 1, 2}, {-kInf, -kInf, -kInf}}) {
    const TokenLogprobs entry = compute_logprobs(bad, 1, 2, test_kernels());
    EXPECT_EQ(entry.token.logprob, kMinLogprob);
    EXPECT_TRUE(entry.top.empty());
  }
  EXPECT_EQ(compute_logprobs(std::vector<float>{3e38f, -3e38f}, 1, 2, test_kernels()).token.logprob, kMinLogprob);
  EXPECT_EQ(compute_logprobs(masked, kNoToken, 2, test_kernels()).token.id, kNoToken);
  EXPECT_EQ(compute_logprobs(masked, 3, 2, test_kernels()).token.logprob, kMinLogprob);
}

TEST(Logprobs, ANumberOfTopEntriesFromZeroToMoreThanThereAre) {
  std::mt19937 rng(23);
  const std::vector<float> logits = random_logits(rng, 500, 3.0f);
  std::vector<int32_t> order(500);
  for (int32_t i = 0; i < 500; ++i) order[static_cast<size_t>(i)] = i;
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  for (const int32_t num_top : {0, 1, 20, 100, 500, 600}) {
    const TokenLogprobs entry = compute_logprobs(logits, 7, num_top, test_kernels());
    ASSERT_EQ(entry.top.size(), static_cast<size_t>(std::min(num_top, 500)));
    for (size_t i = 0; i < entry.top.size(); ++i) EXPECT_EQ(entry.top[i].id, order[i]);
  }
}

}  // namespace
}  // namespace pagoda
