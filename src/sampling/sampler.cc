#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/random.h"
#include "sampling/selection.h"

namespace pagoda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr int32_t kMaxVocab = 1 << 23;  // so that 64 bits hold the sum of all weights (selection.h)

// A finite logit stays finite under every penalty: overflow would make two tokens equally impossible or both certain.
float clamp_finite(float value) {
  return std::clamp(value, -kLargest, kLargest);
}

bool has_any_penalty(const SamplingParams& p) {
  return p.repetition_penalty != 1.0f || p.frequency_penalty != 0.0f || p.presence_penalty != 0.0f;
}

// Below the smallest normal float a temperature is zero, as it is to a compute thread (denormals are zero there).
bool is_greedy(const SamplingParams& p) {
  return p.temperature < std::numeric_limits<float>::min();
}

// Weight that a nucleus must reach: ceil(top_p * total), at least 1 and at most the total.
uint64_t nucleus_weight(float top_p, uint64_t total) {
  const double need = std::ceil(static_cast<double>(top_p) * static_cast<double>(total));
  return std::clamp<uint64_t>(static_cast<uint64_t>(need), 1, total);
}

// Uniform integer in [0, total) from a draw of 53 bits.
uint64_t scale_draw(double uniform, uint64_t total) {
  const auto bits = static_cast<uint64_t>(uniform * 0x1p53);
  return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * total) >> 53);
}

uint64_t sum_weights(std::span<const int32_t> ids, std::span<const float> relative) {
  uint64_t total = 0;
  for (const int32_t id : ids) total += weight_of(relative[static_cast<size_t>(id)]);
  return total;
}

int32_t draw_from_all(std::span<const float> relative, double uniform) {
  uint64_t total = 0;
  for (const float r : relative) total += weight_of(r);
  uint64_t left = scale_draw(uniform, total);
  for (size_t i = 0; i < relative.size(); ++i) {
    const uint64_t weight = weight_of(relative[i]);
    if (left < weight) return static_cast<int32_t>(i);
    left -= weight;
  }
  PAGODA_CHECK(false && "a draw below the total found no token");
  return kNoToken;
}

// Ids whose logit is at least `cut` and that min-p keeps, by rising id; returns their weight.
uint64_t gather(std::span<const float> adjusted, std::span<const float> relative, float cut, float min_p,
                std::vector<int32_t>& ids) {
  ids.clear();
  uint64_t total = 0;
  for (size_t i = 0; i < adjusted.size(); ++i) {
    if (adjusted[i] < cut || relative[i] < min_p) continue;
    const uint64_t weight = weight_of(relative[i]);
    if (weight == 0) continue;
    ids.push_back(static_cast<int32_t>(i));
    total += weight;
  }
  return total;
}

// Leaves in `ids` what min-p and top-p keep of the whole vocabulary. `max` is the largest adjusted logit.
void gather_nucleus(std::span<const float> adjusted, std::span<const float> relative, float max,
                    const SamplingParams& params, std::vector<int32_t>& ids) {
  uint64_t total = 0;
  for (const float r : relative) total += r >= params.min_p ? weight_of(r) : 0;
  const uint64_t need = nucleus_weight(params.top_p, total);
  // The tokens above a cut are a run of the best-ranked, so once they reach the weight they hold the nucleus. e^-8
  // keeps a few hundred of a typical vocabulary; flat distributions take all.
  if (gather(adjusted, relative, max - 8.0f * params.temperature, params.min_p, ids) < need) {
    gather(adjusted, relative, -kInfinity, params.min_p, ids);
  }
  if (need == total && params.top_p >= 1.0f) return;
  ids.resize(
      prefix_reaching(ids, [adjusted](int32_t a, int32_t b) { return ranks_before(adjusted, a, b); }, relative, need));
}

}  // namespace

SamplerScratch::SamplerScratch(int32_t vocab_size)
    : work_(static_cast<size_t>(vocab_size)), relative_(static_cast<size_t>(vocab_size)) {
  candidates_.reserve(static_cast<size_t>(vocab_size));
}

SequenceSampler::SequenceSampler(std::shared_ptr<const SamplingParams> params, int32_t choice_idx,
                                 std::span<const int32_t> end_ids, int32_t vocab_size)
    : params_(std::move(params)),
      choice_idx_(static_cast<uint64_t>(choice_idx)),
      vocab_size_(vocab_size),
      has_penalties_(has_any_penalty(*params_)) {
  PAGODA_CHECK(vocab_size > 0 && vocab_size < kMaxVocab);
  const auto keep_known = [&](int32_t id) {
    if (id >= 0 && id < vocab_size) end_ids_.push_back(id);
  };
  std::for_each(end_ids.begin(), end_ids.end(), keep_known);
  std::for_each(params_->stop_ids.begin(), params_->stop_ids.end(), keep_known);
  if (has_penalties_) count_of_.assign(static_cast<size_t>(vocab_size), -1);
}

void SequenceSampler::count(int32_t id, bool in_prompt) {
  if (id < 0 || id >= vocab_size_) return;
  int32_t& idx = count_of_[static_cast<size_t>(id)];
  if (idx < 0) {
    idx = static_cast<int32_t>(counts_.size());
    counts_.push_back({id, 0, false});
  }
  Count& entry = counts_[static_cast<size_t>(idx)];
  if (in_prompt) {
    entry.in_prompt = true;
  } else {
    ++entry.in_output;
  }
}

void SequenceSampler::reset(std::span<const int32_t> tokens, int32_t num_prompt_tokens) {
  PAGODA_CHECK(num_prompt_tokens >= 0 && static_cast<size_t>(num_prompt_tokens) <= tokens.size());
  const auto num_prompt = static_cast<size_t>(num_prompt_tokens);
  num_generated_ = static_cast<int32_t>(tokens.size() - num_prompt);
  if (!has_penalties_) return;
  for (const Count& entry : counts_) count_of_[static_cast<size_t>(entry.id)] = -1;
  counts_.clear();
  for (size_t i = 0; i < tokens.size(); ++i) count(tokens[i], i < num_prompt);
}

bool SequenceSampler::has_adjustments() const {
  return is_min_tokens_active() || !params_->logit_bias.empty() || has_penalties_;
}

void SequenceSampler::mask_ends(std::span<float> work) const {
  for (const int32_t id : end_ids_) work[static_cast<size_t>(id)] = -kInfinity;
}

void SequenceSampler::apply_penalties(std::span<float> work) const {
  const SamplingParams& p = *params_;
  for (const Count& entry : counts_) {
    float& logit = work[static_cast<size_t>(entry.id)];
    if (logit == -kInfinity) continue;
    float value = logit;
    if (p.repetition_penalty != 1.0f) {
      value = clamp_finite(value > 0.0f ? value / p.repetition_penalty : value * p.repetition_penalty);
    }
    if (entry.in_output > 0) {
      value -= p.frequency_penalty * static_cast<float>(entry.in_output);
      value -= p.presence_penalty;
    }
    logit = clamp_finite(value);
  }
}

int32_t SequenceSampler::draw(std::span<const float> adjusted, float max, int64_t position, SamplerScratch& scratch,
                              const VectorKernels& ops) const {
  const SamplingParams& p = *params_;
  const std::span<float> relative = scratch.relative();
  // Subtracting the largest logit first keeps a tiny temperature from overflowing: it becomes exactly 0, others -large.
  for (size_t i = 0; i < relative.size(); ++i) relative[i] = (adjusted[i] - max) / p.temperature;
  ops.exp_shifted(relative.data(), 0.0f, vocab_size_, relative.data());

  const double uniform = random_uniform({p.seed, choice_idx_, static_cast<uint64_t>(position), RandomPurpose::kSample});
  const bool has_top_k = p.top_k > 0 && p.top_k < vocab_size_;
  if (!has_top_k && p.top_p >= 1.0f && p.min_p <= 0.0f) return draw_from_all(relative, uniform);

  std::vector<int32_t>& kept = scratch.candidates();
  if (has_top_k) {
    const auto passes_min_p = [&](int32_t id) { return relative[static_cast<size_t>(id)] >= p.min_p; };
    select_best(adjusted, static_cast<size_t>(p.top_k), passes_min_p, kept);
    if (p.top_p < 1.0f) {
      const uint64_t need = nucleus_weight(p.top_p, sum_weights(kept, relative));
      const auto before = [adjusted](int32_t a, int32_t b) { return ranks_before(adjusted, a, b); };
      kept.resize(prefix_reaching(kept, before, relative, need));
    }
  } else {
    gather_nucleus(adjusted, relative, max, p, kept);
  }
  const uint64_t target = scale_draw(uniform, sum_weights(kept, relative));
  return kept[prefix_reaching(kept, std::less<int32_t>(), relative, target + 1) - 1];
}

int32_t SequenceSampler::sample(std::span<const float> logits, int64_t position, SamplerScratch& scratch,
                                const VectorKernels& ops) {
  PAGODA_CHECK(logits.size() == static_cast<size_t>(vocab_size_) && scratch.work().size() == logits.size());
  ValueRange range = find_range(logits);
  if (!range.is_usable) return kNoToken;
  std::span<const float> adjusted = logits;
  if (has_adjustments()) {
    const std::span<float> work = scratch.work();
    std::copy(logits.begin(), logits.end(), work.begin());
    if (is_min_tokens_active()) mask_ends(work);
    for (const auto& [id, bias] : params_->logit_bias) work[static_cast<size_t>(id)] += bias;
    apply_penalties(work);
    adjusted = work;
    range = find_range(adjusted);
  }
  if (range.max == -kInfinity) return kNoToken;
  const int32_t id =
      is_greedy(*params_) ? find_first(adjusted, range.max) : draw(adjusted, range.max, position, scratch, ops);
  ++num_generated_;
  if (has_penalties_) count(id, /*in_prompt=*/false);
  return id;
}

}  // namespace pagoda
