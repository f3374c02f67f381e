#include <algorithm>

#include "sampling/sampler.h"
#include "sampling/selection.h"

namespace pagoda {

TokenLogprobs compute_logprobs(std::span<const float> logits, int32_t token, int32_t num_top,
                               const VectorKernels& ops) {
  TokenLogprobs result;
  result.token = {token, kMinLogprob};
  const ValueRange range = find_range(logits);
  const bool is_known = token >= 0 && static_cast<size_t>(token) < logits.size();
  if (!is_known || !range.is_usable || range.max == -std::numeric_limits<float>::infinity()) return result;

  const float log_sum = ops.log_sum_exp(logits.data(), static_cast<int32_t>(logits.size()));
  const auto logprob = [&](int32_t id) {
    return std::clamp(logits[static_cast<size_t>(id)] - log_sum, kMinLogprob, 0.0f);
  };
  result.token.logprob = logprob(token);
  if (num_top <= 0) return result;

  std::vector<int32_t> best;
  select_best(logits, static_cast<size_t>(num_top), [](int32_t) { return true; }, best);
  std::sort(best.begin(), best.end(), [&](int32_t a, int32_t b) { return ranks_before(logits, a, b); });
  result.top.reserve(best.size());
  for (const int32_t id : best) result.top.push_back({id, logprob(id)});
  return result;
}

}  // namespace pagoda
