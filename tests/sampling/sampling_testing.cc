#include "sampling_testing.h"

#include <algorithm>
#include <set>

#include "kernels/kernel_table.h"

namespace pagoda::sampling_testing {

const VectorKernels& test_kernels() {
  return vector_kernels_reference();
}

int32_t draw_once(const SamplingParams& params, std::span<const float> logits, int64_t position, int32_t choice_idx) {
  const auto vocab_size = static_cast<int32_t>(logits.size());
  SamplerScratch scratch(vocab_size);
  return make_sampler(params, vocab_size, {}, choice_idx).sample(logits, position, scratch, test_kernels());
}

std::vector<float> random_logits(std::mt19937& rng, int32_t vocab_size, float spread) {
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> logits(static_cast<size_t>(vocab_size));
  for (float& logit : logits) logit = normal(rng);
  return logits;
}

std::vector<float> slow_adjust(const SamplingParams& params, std::span<const float> logits, const History& history,
                               std::span<const int32_t> end_ids) {
  std::vector<float> out(logits.begin(), logits.end());
  const auto at = [&](int32_t id) -> float& { return out[static_cast<size_t>(id)]; };
  if (static_cast<int32_t>(history.output.size()) < params.min_tokens) {
    for (const int32_t id : end_ids) at(id) = -kInf;
    for (const int32_t id : params.stop_ids) at(id) = -kInf;
  }
  for (const auto& [id, bias] : params.logit_bias) at(id) += bias;
  std::set<int32_t> seen(history.prompt.begin(), history.prompt.end());
  seen.insert(history.output.begin(), history.output.end());
  for (const int32_t id : seen) {
    at(id) = at(id) > 0 ? at(id) / params.repetition_penalty : at(id) * params.repetition_penalty;
  }
  for (const int32_t id : std::set<int32_t>(history.output.begin(), history.output.end())) {
    const auto uses = std::count(history.output.begin(), history.output.end(), id);
    at(id) -= params.frequency_penalty * static_cast<float>(uses);
    at(id) -= params.presence_penalty;
  }
  return out;
}

std::vector<std::pair<int32_t, double>> slow_law(const SamplingParams& params, std::span<const float> adjusted) {
  std::vector<std::pair<int32_t, double>> law;
  std::vector<int32_t> order(adjusted.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const float va = adjusted[static_cast<size_t>(a)];
    const float vb = adjusted[static_cast<size_t>(b)];
    return va != vb ? va > vb : a < b;
  });
  const double max = adjusted[static_cast<size_t>(order[0])];
  for (const int32_t id : order) {
    const double value = adjusted[static_cast<size_t>(id)];
    if (std::isinf(value)) continue;
    if (params.temperature == 0.0f) return {{id, 1.0}};
    law.emplace_back(id, std::exp((value - max) / static_cast<double>(params.temperature)));
  }
  std::erase_if(law, [&](const auto& entry) { return entry.second < static_cast<double>(params.min_p); });
  if (params.top_k > 0 && law.size() > static_cast<size_t>(params.top_k)) law.resize(static_cast<size_t>(params.top_k));
  const auto total = [&] {
    double sum = 0.0;
    for (const auto& entry : law) sum += entry.second;
    return sum;
  };
  if (params.top_p < 1.0f) {
    const double need = static_cast<double>(params.top_p) * total();
    double reached = 0.0;
    size_t kept = 0;
    while (kept < law.size() && reached < need) reached += law[kept++].second;
    law.resize(std::max<size_t>(kept, 1));
  }
  const double sum = total();
  for (auto& entry : law) entry.second /= sum;
  return law;
}

std::vector<int64_t> histogram(const SamplingParams& params, std::span<const float> logits, int64_t num_draws) {
  const auto vocab_size = static_cast<int32_t>(logits.size());
  SamplerScratch scratch(vocab_size);
  SequenceSampler sampler = make_sampler(params, vocab_size);
  std::vector<int64_t> counts(logits.size(), 0);
  for (int64_t position = 0; position < num_draws; ++position) {
    const int32_t id = sampler.sample(logits, position, scratch, test_kernels());
    if (id < 0 || id >= vocab_size) return {};
    ++counts[static_cast<size_t>(id)];
  }
  return counts;
}

double chi_square(std::span<const int64_t> counts, std::span<const std::pair<int32_t, double>> law) {
  int64_t num_draws = 0;
  for (const int64_t count : counts) num_draws += count;
  int64_t num_allowed = 0;
  double statistic = 0.0;
  for (const auto& [id, probability] : law) {
    const auto observed = static_cast<double>(counts[static_cast<size_t>(id)]);
    const double expected = probability * static_cast<double>(num_draws);
    statistic += (observed - expected) * (observed - expected) / expected;
    num_allowed += counts[static_cast<size_t>(id)];
  }
  return num_allowed == num_draws && num_draws > 0 ? statistic : std::numeric_limits<double>::infinity();
}

double chi_square_limit(int degrees) {
  constexpr double kNormalQuantile = 3.0902;  // P(Z > 3.0902) = 0.001
  const double spread = 2.0 / (9.0 * degrees);
  const double root = 1.0 - spread + kNormalQuantile * std::sqrt(spread);
  return degrees * root * root * root;
}

}  // namespace pagoda::sampling_testing
