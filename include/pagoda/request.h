#pragma once
// A generation request as plain, validated data. Front ends (command line, server) fill it; the engine reads it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pagoda/status.h"

namespace pagoda {

/// How tokens are chosen. The order of the steps is fixed: min-tokens, logit bias, repetition, frequency and presence
/// penalties, temperature, min-p, top-k, top-p, draw. temperature 0 is greedy: the highest logit after the penalties,
/// the lowest id among equals.
struct SamplingParams {
  float temperature = 1.0f;         ///< [0, 100]; 0: greedy
  int32_t top_k = 0;                ///< >= 0; 0: off
  float top_p = 1.0f;               ///< (0, 1]; 1: off
  float min_p = 0.0f;               ///< [0, 1]; 0: off; keeps p >= min_p * max p
  float repetition_penalty = 1.0f;  ///< (0, 100]; over prompt and output (Keskar et al., CTRL, 2019)
  float frequency_penalty = 0.0f;   ///< [-2, 2]; times the count in the output
  float presence_penalty = 0.0f;    ///< [-2, 2]; once for a token in the output
  std::vector<std::pair<int32_t, float>> logit_bias;  ///< added to raw logits; at most 1024 entries; -100..100 or -inf
  uint64_t seed = 0;                ///< with (choice, position) it keys every draw

  int32_t max_tokens = 0;           ///< > 0; 0: up to the context length
  int32_t min_tokens = 0;           ///< end-of-generation and stop ids cannot be drawn before
  bool ignore_eos = false;          ///< end-of-generation tokens do not stop the request
  std::vector<int32_t> stop_ids;    ///< further ids that stop it (kept out of the text); at most 1024
  std::vector<std::string> stop;    ///< texts that stop it (kept out of the text); at most 16, not empty
  int32_t num_logprobs = -1;        ///< top entries beside each output token; -1: no logprobs at all; at most 100
  int32_t num_prompt_logprobs = -1; ///< the same for prompt tokens
  int32_t num_choices = 1;          ///< independent continuations of one prompt, 1..128
};

/// kInvalidArgument naming the field and its range. `vocab_size` bounds ids.
Status validate(const SamplingParams& params, int32_t vocab_size);

struct Request {
  std::string id;                   ///< for logs and messages; may be empty
  std::vector<int32_t> prompt_ids;  ///< not empty
  SamplingParams sampling;
  std::string cache_namespace;      ///< requests share cached prefixes only within one namespace
};

enum class FinishReason : uint8_t { kNone, kStop, kLength, kCancelled, kError };
std::string_view finish_reason_name(FinishReason reason);  ///< "stop", "length", "cancelled", "error", ""

struct TokenLogprob {
  int32_t id = 0;
  float logprob = 0.0f;
};

/// Log-probabilities of the raw logits (before any penalty, temperature or mask).
struct TokenLogprobs {
  TokenLogprob token;               ///< the token itself
  std::vector<TokenLogprob> top;    ///< the most likely, best first; ties by lowest id
};

}  // namespace pagoda
