#include "pagoda/request.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace pagoda {
namespace {

constexpr int32_t kVocab = 32000;
constexpr int32_t kLowest = std::numeric_limits<int32_t>::min();
constexpr int32_t kHighest = std::numeric_limits<int32_t>::max();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

struct Case {
  const char* field;  // must be in the message
  std::function<void(SamplingParams&)> spoil;
};

TEST(ValidateRequest, DefaultsAndTheEdgesOfEveryRangePass) {
  EXPECT_TRUE(validate({}, kVocab).ok());
  SamplingParams low;
  low.temperature = 0.0f;
  low.top_p = std::numeric_limits<float>::denorm_min();
  low.repetition_penalty = 1e-30f;
  low.frequency_penalty = low.presence_penalty = -2.0f;
  low.logit_bias = {{0, -100.0f}, {kVocab - 1, 100.0f}, {5, -kInf}};
  low.stop_ids = {0, kVocab - 1};
  low.stop.assign(16, "x");
  EXPECT_TRUE(validate(low, kVocab).ok());
  SamplingParams high;
  high.temperature = high.repetition_penalty = 100.0f;
  high.min_p = 1.0f;
  high.frequency_penalty = high.presence_penalty = 2.0f;
  high.top_k = high.max_tokens = high.min_tokens = std::numeric_limits<int32_t>::max();
  high.num_logprobs = high.num_prompt_logprobs = 100;
  high.num_choices = 128;
  high.logit_bias.assign(1024, {1, 0.0f});
  EXPECT_TRUE(validate(high, kVocab).ok());
}

TEST(ValidateRequest, B42EveryFieldOutOfRangeIsNamed) {
  const std::vector<Case> cases{
      {"temperature", [](SamplingParams& p) { p.temperature = -0.1f; }},
      {"temperature", [](SamplingParams& p) { p.temperature = 100.1f; }},
      {"temperature", [](SamplingParams& p) { p.temperature = kNan; }},
      {"top_k", [](SamplingParams& p) { p.top_k = -1; }},
      {"top_p", [](SamplingParams& p) { p.top_p = 0.0f; }},
      {"top_p", [](SamplingParams& p) { p.top_p = 1.01f; }},
      {"top_p", [](SamplingParams& p) { p.top_p = kNan; }},
      {"min_p", [](SamplingParams& p) { p.min_p = -0.01f; }},
      {"min_p", [](SamplingParams& p) { p.min_p = kNan; }},
      {"repetition_penalty", [](SamplingParams& p) { p.repetition_penalty = 0.0f; }},
      {"repetition_penalty", [](SamplingParams& p) { p.repetition_penalty = kInf; }},
      {"frequency_penalty", [](SamplingParams& p) { p.frequency_penalty = 2.1f; }},
      {"presence_penalty", [](SamplingParams& p) { p.presence_penalty = -2.1f; }},
      {"logit_bias", [](SamplingParams& p) { p.logit_bias = {{191222, -100.0f}}; }},
      {"logit_bias", [](SamplingParams& p) { p.logit_bias = {{-1, 5.0f}}; }},
      {"logit_bias", [](SamplingParams& p) { p.logit_bias = {{kVocab, 5.0f}}; }},
      {"logit_bias", [](SamplingParams& p) { p.logit_bias = {{kHighest, 5.0f}}; }},
      {"logit_bias[1]", [](SamplingParams& p) { p.logit_bias = {{1, 5.0f}, {1, kInf}}; }},
      {"logit_bias", [](SamplingParams& p) { p.logit_bias = {{1, kNan}}; }},
      {"logit_bias", [](SamplingParams& p) { p.logit_bias = {{1, -100.5f}}; }},
      {"logit_bias", [](SamplingParams& p) { p.logit_bias.assign(1025, {1, 0.0f}); }},
      {"stop_ids", [](SamplingParams& p) { p.stop_ids = {151645}; }},
      {"stop_ids[1]", [](SamplingParams& p) { p.stop_ids = {2, kLowest}; }},
      {"stop_ids", [](SamplingParams& p) { p.stop_ids.assign(1025, 1); }},
      {"stop[1]", [](SamplingParams& p) { p.stop = {"a", ""}; }},
      {"stop[0]", [](SamplingParams& p) { p.stop = {"\xA9"}; }},
      {"stop", [](SamplingParams& p) { p.stop.assign(17, "x"); }},
      {"max_tokens", [](SamplingParams& p) { p.max_tokens = -1; }},
      {"min_tokens", [](SamplingParams& p) { p.min_tokens = kLowest; }},
      {"min_tokens", [](SamplingParams& p) { p.min_tokens = 6, p.max_tokens = 5; }},
      {"num_logprobs", [](SamplingParams& p) { p.num_logprobs = 101; }},
      {"num_logprobs", [](SamplingParams& p) { p.num_logprobs = -2; }},
      {"num_prompt_logprobs", [](SamplingParams& p) { p.num_prompt_logprobs = 101; }},
      {"num_choices", [](SamplingParams& p) { p.num_choices = 0; }},
      {"num_choices", [](SamplingParams& p) { p.num_choices = 129; }},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    SamplingParams params;
    cases[i].spoil(params);
    const Status status = validate(params, kVocab);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << "case " << i << ", " << cases[i].field;
    EXPECT_EQ(status.message().substr(0, std::string_view(cases[i].field).size()), cases[i].field)
        << status.to_string();
  }
}

TEST(FinishReasonName, IsTheApiWord) {
  EXPECT_EQ(finish_reason_name(FinishReason::kNone), "");
  EXPECT_EQ(finish_reason_name(FinishReason::kStop), "stop");
  EXPECT_EQ(finish_reason_name(FinishReason::kLength), "length");
  EXPECT_EQ(finish_reason_name(FinishReason::kCancelled), "cancelled");
  EXPECT_EQ(finish_reason_name(FinishReason::kError), "error");
}

}  // namespace
}  // namespace pagoda
