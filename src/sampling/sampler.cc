#include "sampling/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
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

// The token at which the weights of the kept ids, summed by rising id, pass `left`.
template <typename Keep>
int32_t walk(std::span<const float> relative, uint64_t left, const Keep& is_kept) {
  for (size_t i = 0; i < relative.size(); ++i) {
    const uint64_t weight = weight_of(relative[i]);
    if (weight == 0 || !is_kept(static_cast<int32_t>(i))) continue;
    if (left < weight) return static_cast<int32_t>(i);
    left -= weight;
  }
  PAGODA_CHECK(false && "a draw below the total found no token");
  return kNoToken;
}

// Sorts tokens into buckets by how far their logit lies below the largest. The bucket of a better-ranked token is never
// higher (subtraction and product round monotonically), so whole buckets enter a nucleus before a single token is
// compared. 12 buckets for each factor e of probability; the last holds what is below e^-85, where weights are 0.
struct Buckets {
  static constexpr int32_t kCount = 1024;
  float max;
  float scale;  // 12 / temperature

  int32_t of(float logit) const {
    const float bucket = (max - logit) * scale;
    return bucket < static_cast<float>(kCount - 1) ? static_cast<int32_t>(bucket) : kCount - 1;
  }
};

struct Nucleus {
  int32_t last = kNoToken;  // the worst-ranked token kept
  uint64_t total = 0;       // weight of the kept ones
};

// What top-p keeps of the tokens that min-p keeps. `total` is their weight.
Nucleus find_nucleus(std::span<const float> adjusted, std::span<const float> relative, float max,
                     const SamplingParams& params, uint64_t total, std::vector<int32_t>& ids) {
  const Buckets buckets{max, 12.0f / params.temperature};
  const auto bucket_of = [&](size_t i) {
    return relative[i] < params.min_p ? Buckets::kCount : buckets.of(adjusted[i]);
  };
  std::array<uint64_t, Buckets::kCount + 1> weights{};  // the last one: what min-p drops
  for (size_t i = 0; i < relative.size(); ++i) weights[static_cast<size_t>(bucket_of(i))] += weight_of(relative[i]);

  const uint64_t need = nucleus_weight(params.top_p, total);
  uint64_t above = 0;
  size_t edge = 0;  // the bucket in which the weight is reached
  while (above + weights[edge] < need) above += weights[edge++];
  ids.clear();
  for (size_t i = 0; i < relative.size(); ++i) {
    if (static_cast<size_t>(bucket_of(i)) == edge) ids.push_back(static_cast<int32_t>(i));
  }
  const auto before = [adjusted](int32_t a, int32_t b) { return ranks_before(adjusted, a, b); };
  ids.resize(prefix_reaching(ids, before, relative, need - above));
  return {ids.back(), above + sum_weights(ids, relative)};
}

// A draw from all tokens that min-p and top-p keep.
int32_t draw_without_top_k(std::span<const float> adjusted, std::span<const float> relative, float max,
                           const SamplingParams& params, double uniform, std::vector<int32_t>& ids) {
  const auto passes_min_p = [&](int32_t id) { return relative[static_cast<size_t>(id)] >= params.min_p; };
  uint64_t total = 0;
  for (const float r : relative) total += r >= params.min_p ? weight_of(r) : 0;
  if (params.top_p >= 1.0f) return walk(relative, scale_draw(uniform, total), passes_min_p);
  const Nucleus nucleus = find_nucleus(adjusted, relative, max, params, total, ids);
  return walk(relative, scale_draw(uniform, nucleus.total),
              [&](int32_t id) { return passes_min_p(id) && !ranks_before(adjusted, nucleus.last, id); });
}

// A draw from the top_k best of those that min-p keeps, after top-p.
int32_t draw_with_top_k(std::span<const float> adjusted, std::span<const float> relative, const SamplingParams& params,
                        double uniform, std::vector<int32_t>& ids) {
  const auto passes_min_p = [&](int32_t id) { return relative[static_cast<size_t>(id)] >= params.min_p; };
  select_best(adjusted, static_cast<size_t>(params.top_k), passes_min_p, ids);
  if (params.top_p < 1.0f) {
    const uint64_t need = nucleus_weight(params.top_p, sum_weights(ids, relative));
    const auto before = [adjusted](int32_t a, int32_t b) { return ranks_before(adjusted, a, b); };
    ids.resize(prefix_reaching(ids, before, relative, need));
  }
  const uint64_t left = scale_draw(uniform, sum_weights(ids, relative));
  return ids[prefix_reaching(ids, std::less<int32_t>(), relative, left + 1) - 1];
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
  if (p.top_k > 0 && p.top_k < vocab_size_)
    return draw_with_top_k(adjusted, relative, p, uniform, scratch.candidates());
  return draw_without_top_k(adjusted, relative, max, p, uniform, scratch.candidates());
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
