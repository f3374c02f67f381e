#include "pagoda/request.h"

#include <cmath>
#include <limits>

#include "base/utf8.h"

namespace pagoda {
namespace {

constexpr size_t kMaxLogitBias = 1024;
constexpr size_t kMaxStopStrings = 16;
constexpr size_t kMaxStopIds = 1024;
constexpr int32_t kMaxLogprobs = 100;
constexpr int32_t kMaxChoices = 128;

std::string number(float value) {
  if (std::isnan(value)) return "NaN";
  std::string text = std::to_string(value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

Status out_of_range(std::string_view field, const std::string& value, std::string_view range) {
  return invalid_argument(std::string(field) + " is " + value + "; it must be in " + std::string(range));
}

// Written as "not inside" so that NaN is refused.
Status check_floats(const SamplingParams& p) {
  if (!(p.temperature >= 0.0f && p.temperature <= 100.0f)) {
    return out_of_range("temperature", number(p.temperature), "[0, 100]");
  }
  if (!(p.top_p > 0.0f && p.top_p <= 1.0f)) return out_of_range("top_p", number(p.top_p), "(0, 1]");
  if (!(p.min_p >= 0.0f && p.min_p <= 1.0f)) return out_of_range("min_p", number(p.min_p), "[0, 1]");
  if (!(p.repetition_penalty > 0.0f && p.repetition_penalty <= 100.0f)) {
    return out_of_range("repetition_penalty", number(p.repetition_penalty), "(0, 100]");
  }
  if (!(p.frequency_penalty >= -2.0f && p.frequency_penalty <= 2.0f)) {
    return out_of_range("frequency_penalty", number(p.frequency_penalty), "[-2, 2]");
  }
  if (!(p.presence_penalty >= -2.0f && p.presence_penalty <= 2.0f)) {
    return out_of_range("presence_penalty", number(p.presence_penalty), "[-2, 2]");
  }
  return {};
}

Status check_integer(std::string_view field, int32_t value, int32_t low, int32_t high) {
  if (value >= low && value <= high) return {};
  return out_of_range(field, std::to_string(value), "[" + std::to_string(low) + ", " + std::to_string(high) + "]");
}

Status check_id(std::string_view field, size_t index, int32_t id, int32_t vocab_size) {
  if (id >= 0 && id < vocab_size) return {};
  return invalid_argument(std::string(field) + "[" + std::to_string(index) + "]: token id " + std::to_string(id) +
                          " is outside the vocabulary; it must be in [0, " + std::to_string(vocab_size - 1) + "]");
}

Status check_count(std::string_view field, size_t count, size_t limit) {
  if (count <= limit) return {};
  return invalid_argument(std::string(field) + " has " + std::to_string(count) + " entries; at most " +
                          std::to_string(limit) + " are allowed");
}

Status check_lists(const SamplingParams& p, int32_t vocab_size) {
  PAGODA_RETURN_IF_ERROR(check_count("logit_bias", p.logit_bias.size(), kMaxLogitBias));
  for (size_t i = 0; i < p.logit_bias.size(); ++i) {
    const auto [id, bias] = p.logit_bias[i];
    PAGODA_RETURN_IF_ERROR(check_id("logit_bias", i, id, vocab_size));
    const bool is_ban = bias == -std::numeric_limits<float>::infinity();
    if (!is_ban && !(bias >= -100.0f && bias <= 100.0f)) {
      return out_of_range("logit_bias[" + std::to_string(i) + "]", number(bias), "[-100, 100] or -inf");
    }
  }
  PAGODA_RETURN_IF_ERROR(check_count("stop_ids", p.stop_ids.size(), kMaxStopIds));
  for (size_t i = 0; i < p.stop_ids.size(); ++i) {
    PAGODA_RETURN_IF_ERROR(check_id("stop_ids", i, p.stop_ids[i], vocab_size));
  }
  PAGODA_RETURN_IF_ERROR(check_count("stop", p.stop.size(), kMaxStopStrings));
  for (size_t i = 0; i < p.stop.size(); ++i) {
    const std::string name = "stop[" + std::to_string(i) + "]";
    if (p.stop[i].empty()) return invalid_argument(name + " is empty; give it a text or drop it");
    // Output is UTF-8: such a text could only match by cutting a character in two.
    if (!is_valid_utf8(p.stop[i])) return invalid_argument(name + " is not valid UTF-8");
  }
  return {};
}

}  // namespace

Status validate(const SamplingParams& params, int32_t vocab_size) {
  constexpr int32_t kAny = std::numeric_limits<int32_t>::max();
  PAGODA_RETURN_IF_ERROR(check_floats(params));
  PAGODA_RETURN_IF_ERROR(check_integer("top_k", params.top_k, 0, kAny));
  PAGODA_RETURN_IF_ERROR(check_integer("max_tokens", params.max_tokens, 0, kAny));
  PAGODA_RETURN_IF_ERROR(check_integer("min_tokens", params.min_tokens, 0, kAny));
  if (params.max_tokens > 0 && params.min_tokens > params.max_tokens) {
    return invalid_argument("min_tokens is " + std::to_string(params.min_tokens) + "; it must not exceed max_tokens, " +
                            std::to_string(params.max_tokens));
  }
  PAGODA_RETURN_IF_ERROR(check_integer("num_logprobs", params.num_logprobs, -1, kMaxLogprobs));
  PAGODA_RETURN_IF_ERROR(check_integer("num_prompt_logprobs", params.num_prompt_logprobs, -1, kMaxLogprobs));
  PAGODA_RETURN_IF_ERROR(check_integer("num_choices", params.num_choices, 1, kMaxChoices));
  return check_lists(params, vocab_size);
}

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "";
}

}  // namespace pagoda
