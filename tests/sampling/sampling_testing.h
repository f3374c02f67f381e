#pragma once
// Shared by the sampling tests: kernels, random logits, and a slow sampler written straight from the published order.

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "kernels/vector_ops.h"
#include "pagoda/request.h"
#include "sampling/sampler.h"

namespace pagoda::sampling_testing {

inline constexpr float kInf = std::numeric_limits<float>::infinity();

/// The reference level.
const VectorKernels& test_kernels();

inline SequenceSampler make_sampler(const SamplingParams& params, int32_t vocab_size, std::vector<int32_t> end_ids = {},
                                    int32_t choice_idx = 0) {
  return {std::make_shared<const SamplingParams>(params), choice_idx, end_ids, vocab_size};
}

/// One draw of a fresh sequence with a one-token prompt.
int32_t draw_once(const SamplingParams& params, std::span<const float> logits, int64_t position,
                  int32_t choice_idx = 0);

std::vector<float> random_logits(std::mt19937& rng, int32_t vocab_size, float spread);
inline std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

struct History {
  std::vector<int32_t> prompt;
  std::vector<int32_t> output;
};

/// Logits after min-tokens, bias and penalties.
std::vector<float> slow_adjust(const SamplingParams& params, std::span<const float> logits, const History& history,
                               std::span<const int32_t> end_ids);
/// (id, probability) of every token that can be drawn, best first, in double.
std::vector<std::pair<int32_t, double>> slow_law(const SamplingParams& params, std::span<const float> adjusted);

/// Ids drawn at positions 0..num_draws-1, counted.
std::vector<int64_t> histogram(const SamplingParams& params, std::span<const float> logits, int64_t num_draws);
/// Pearson's statistic of counts against a law; the law's zeros must have count 0 (infinite otherwise).
double chi_square(std::span<const int64_t> counts, std::span<const std::pair<int32_t, double>> law);
/// The value a chi-square variable with this many degrees of freedom passes with probability 0.001
/// (Wilson and Hilferty's approximation).
double chi_square_limit(int degrees);

}  // namespace pagoda::sampling_testing
