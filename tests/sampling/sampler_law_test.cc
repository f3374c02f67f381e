// Laws and kept sets of the draw: against exact probabilities, and against a slow sampler that sorts everything.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sampling_testing.h"

namespace pagoda {
namespace {

using namespace sampling_testing;  // NOLINT: the test's own vocabulary

std::set<int32_t> drawn_set(const SamplingParams& params, std::span<const float> logits, int64_t num_draws = 20000) {
  const std::vector<int64_t> counts = histogram(params, logits, num_draws);
  std::set<int32_t> ids;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) ids.insert(static_cast<int32_t>(i));
  }
  return ids;
}

using Ids = std::set<int32_t>;

TEST(SamplerLaw, B23TopPWorksOnWhatTopKLeft) {
  SamplingParams params;
  params.top_k = 1;
  params.top_p = 0.8f;
  EXPECT_EQ(drawn_set(params, logits_of({.5, .3, .2})), Ids{0});
}

TEST(SamplerLaw, B23TopKZeroIsOff) {
  SamplingParams params;
  params.top_k = 0;
  EXPECT_EQ(drawn_set(params, logits_of({.5, .3, .2})), (Ids{0, 1, 2}));
}

TEST(SamplerLaw, B23TemperatureComesBeforeTopP) {
  SamplingParams params;
  params.top_p = 0.8f;
  params.temperature = 0.5f;
  EXPECT_EQ(drawn_set(params, std::vector<float>{3, 2, 1}), Ids{0});
  params.temperature = 1.0f;
  EXPECT_EQ(drawn_set(params, std::vector<float>{3, 2, 1}), (Ids{0, 1}));
}

TEST(SamplerLaw, MinPComesBeforeTopKAndTopP) {
  SamplingParams params;
  params.min_p = 0.5f;  // keeps .4 and .25
  params.top_p = 0.6f;  // .4 / .65 = .615 reaches it alone; of the whole law it would need .25 too
  EXPECT_EQ(drawn_set(params, logits_of({.4, .25, .15, .1, .1})), Ids{0});
  params.top_p = 1.0f;
  EXPECT_EQ(drawn_set(params, logits_of({.4, .25, .15, .1, .1})), (Ids{0, 1}));
  params.min_p = 1.0f;
  EXPECT_EQ(drawn_set(params, logits_of({.2, .4, .4})), (Ids{1, 2}));
}

TEST(SamplerLaw, MinPFollowsTemperature) {
  SamplingParams params;
  params.min_p = 0.3f;
  EXPECT_EQ(drawn_set(params, std::vector<float>{0, -1, -2}), (Ids{0, 1}));  // e^-1 = .37
  params.temperature = 0.5f;
  EXPECT_EQ(drawn_set(params, std::vector<float>{0, -1, -2}), Ids{0});  // e^-2 = .14
}

TEST(SamplerLaw, TopPStopsExactlyWhereItIsReached) {
  const std::vector<float> equal(4, 1.5f);
  SamplingParams params;
  params.top_p = 0.5f;
  EXPECT_EQ(drawn_set(params, equal), (Ids{0, 1}));  // 1/4 + 1/4 reaches 1/2; equal tokens by lowest id
  params.top_p = 0.500001f;
  EXPECT_EQ(drawn_set(params, equal), (Ids{0, 1, 2}));
  params.top_p = 1e-30f;
  EXPECT_EQ(drawn_set(params, equal), Ids{0});
}

TEST(SamplerLaw, TopKKeepsTheLowestIdsOfATie) {
  SamplingParams params;
  params.top_k = 2;
  EXPECT_EQ(drawn_set(params, std::vector<float>{0, 1, 1, 1}), (Ids{1, 2}));
  params.top_k = 3;
  EXPECT_EQ(drawn_set(params, std::vector<float>{1, 0, 2, 1, 1}), (Ids{0, 2, 3}));
  params.top_k = 100;  // more than there are
  EXPECT_EQ(drawn_set(params, std::vector<float>{1, 0, 2}), (Ids{0, 1, 2}));
}

TEST(SamplerLaw, TopKOneIsGreedyEvenWhereProbabilitiesRoundTogether) {
  SamplingParams params;
  params.top_k = 1;
  params.temperature = 100.0f;
  const std::vector<float> logits{1.0f, 1.0000001f, 0.0f};
  EXPECT_EQ(drawn_set(params, logits, 100), Ids{1});
}

struct Combo {
  const char* name;
  float temperature;
  int32_t top_k;
  float top_p;
  float min_p;
};

class SamplerChiSquare : public testing::TestWithParam<Combo> {};

TEST_P(SamplerChiSquare, B23HundredThousandDrawsFollowTheLaw) {
  const Combo& combo = GetParam();
  std::mt19937 rng(7);
  const std::vector<float> logits = random_logits(rng, 40, 1.2f);
  SamplingParams params;
  params.seed = 2024;
  params.temperature = combo.temperature;
  params.top_k = combo.top_k;
  params.top_p = combo.top_p;
  params.min_p = combo.min_p;
  const auto law = slow_law(params, logits);
  ASSERT_GT(law.size(), 1u);
  ASSERT_GT(law.back().second * 100000, 5.0);  // Pearson's statistic needs counts of some size
  const std::vector<int64_t> counts = histogram(params, logits, 100000);
  EXPECT_LT(chi_square(counts, law), chi_square_limit(static_cast<int>(law.size()) - 1));
}

INSTANTIATE_TEST_SUITE_P(Combos, SamplerChiSquare,
                         testing::Values(Combo{"plain", 1.0f, 0, 1.0f, 0.0f}, Combo{"warm", 1.7f, 0, 1.0f, 0.0f},
                                         Combo{"cold", 0.8f, 0, 1.0f, 0.0f}, Combo{"top_k", 1.0f, 7, 1.0f, 0.0f},
                                         Combo{"top_p", 1.0f, 0, 0.8f, 0.0f}, Combo{"min_p", 1.0f, 0, 1.0f, 0.1f},
                                         Combo{"top_k_top_p", 0.9f, 12, 0.9f, 0.0f},
                                         Combo{"all", 1.3f, 20, 0.85f, 0.05f}),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(SamplerLaw, NeighbouringPositionsAndChoicesAreIndependent) {
  const std::vector<float> logits = logits_of({.4, .3, .2, .1});
  const std::vector<std::pair<int32_t, double>> law{{0, .4}, {1, .3}, {2, .2}, {3, .1}};
  SamplingParams params;
  std::vector<int64_t> by_choice(4, 0);
  std::vector<int64_t> pairs(16, 0);
  std::vector<std::pair<int32_t, double>> pair_law;
  for (int32_t a = 0; a < 4; ++a) {
    for (int32_t b = 0; b < 4; ++b) pair_law.emplace_back(4 * a + b, law[a].second * law[b].second);
  }
  for (int32_t i = 0; i < 20000; ++i) {
    ++by_choice[draw_once(params, logits, 5, i)];
    ++pairs[4 * draw_once(params, logits, 2 * i) + draw_once(params, logits, 2 * i + 1)];
  }
  EXPECT_LT(chi_square(by_choice, law), chi_square_limit(3));
  EXPECT_LT(chi_square(pairs, pair_law), chi_square_limit(15));
}

// The kept set, not only the law: a draw that lands nowhere else, over random settings and vocabularies large enough to
// take the partial-selection paths.
TEST(SamplerLaw, RandomSettingsKeepWhatTheSlowSamplerKeeps) {
  std::mt19937 rng(99);
  const auto uniform = [&](float low, float high) { return std::uniform_real_distribution<float>(low, high)(rng); };
  for (int round = 0; round < 300; ++round) {
    const int32_t vocab_size = round % 3 == 0 ? 5000 : 3 + static_cast<int32_t>(rng() % 200);
    std::vector<float> logits = random_logits(rng, vocab_size, uniform(0.01f, 6.0f));
    if (round % 2 == 0) {  // many ties
      for (float& logit : logits) logit = std::round(logit * 2.0f) / 2.0f;
    }
    if (round % 5 == 0) {
      for (int i = 0; i < vocab_size / 2; ++i) logits[rng() % logits.size()] = -kInf;
    }
    if (std::all_of(logits.begin(), logits.end(), [](float x) { return x == -kInf; })) logits[0] = 0.0f;
    SamplingParams params;
    params.seed = rng();
    params.temperature = uniform(0.2f, 2.0f);
    if (rng() % 2 == 0) params.top_k = 1 + static_cast<int32_t>(rng() % static_cast<uint32_t>(vocab_size));
    if (rng() % 2 == 0) params.top_p = uniform(0.05f, 0.99f);
    if (rng() % 3 == 0) params.min_p = uniform(0.0f, 0.3f);
    const auto law = slow_law(params, logits);
    std::set<int32_t> allowed;
    for (const auto& entry : law) allowed.insert(entry.first);
    const std::set<int32_t> drawn = drawn_set(params, logits, 200);
    EXPECT_TRUE(std::includes(allowed.begin(), allowed.end(), drawn.begin(), drawn.end())) << "round " << round;
    // Every token that 200 draws all miss with probability below 1e-9 must have been drawn.
    for (const auto& [id, probability] : law) {
      if (probability > 0.1) EXPECT_TRUE(drawn.contains(id)) << "round " << round << " id " << id;
    }
  }
}

TEST(SamplerLaw, ATopKOfTheWholeVocabularyChangesNoDraw) {
  std::mt19937 rng(5);
  const std::vector<float> logits = random_logits(rng, 3000, 2.0f);
  SamplingParams plain;
  SamplingParams with_top_k = plain;
  with_top_k.top_k = 2999;  // leaves out one token, the least likely
  SamplingParams with_min_p = plain;
  with_min_p.min_p = 1e-30f;
  for (int64_t position = 0; position < 200; ++position) {
    const int32_t id = draw_once(plain, logits, position);
    EXPECT_EQ(draw_once(with_top_k, logits, position), id);
    EXPECT_EQ(draw_once(with_min_p, logits, position), id);
  }
}

}  // namespace
}  // namespace pagoda
