#pragma once
// What tests of the engine share: a tiny tokenizer, an engine over a ScriptedExecutor that outlives it, a gate that
// holds the engine thread between two steps, and a collector of streams.

#include <gtest/gtest.h>

#include <condition_variable>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/scripted_executor.h"

namespace pagoda {

inline constexpr int32_t kEosId = 2;
inline constexpr int32_t kFirstByteId = 3;
inline constexpr int32_t kFirstPieceId = kFirstByteId + 256;

/// <unk> <s> </s>, the 256 byte tokens, then the given pieces.
inline std::unique_ptr<Tokenizer> make_byte_tokenizer(const std::vector<std::string>& pieces = {}) {
  TokenizerSpec spec;
  spec.model = TokenizerModel::kSentencePieceBpe;
  spec.byte_fallback = true;
  spec.tokens = {
      {"<unk>", 0.0f, TokenType::kUnknown}, {"<s>", 0.0f, TokenType::kControl}, {"</s>", 0.0f, TokenType::kControl}};
  for (int byte = 0; byte < 256; ++byte) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    spec.tokens.push_back({std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", 0.0f, TokenType::kByte});
  }
  for (const std::string& piece : pieces) spec.tokens.push_back({piece, -1.0f, TokenType::kNormal});
  spec.unk_id = 0;
  spec.bos_id = 1;
  spec.eos_id = kEosId;
  auto tokenizer = Tokenizer::create(std::move(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  return std::move(tokenizer).value();
}

/// Lets the engine thread through a number of steps, then holds it before the next one.
class StepGate {
 public:
  explicit StepGate(int64_t num_allowed) : num_allowed_(num_allowed) {}

  void pass() {
    std::unique_lock lock(mutex_);
    ++num_arrived_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return num_arrived_ <= num_allowed_; });
  }
  /// Returns when the engine thread stands before step `step` (from 1) or has passed it.
  void wait_for_step(int64_t step) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return num_arrived_ >= step; });
  }
  void allow(int64_t num_steps) {
    const std::lock_guard lock(mutex_);
    num_allowed_ = num_steps;
    changed_.notify_all();
  }
  void open() { allow(std::numeric_limits<int64_t>::max()); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t num_allowed_, num_arrived_ = 0;  // guarded by mutex_
};

/// Passes plans on to an executor that the test keeps.
class SharedExecutor : public Executor {
 public:
  explicit SharedExecutor(std::shared_ptr<ScriptedExecutor> executor) : executor_(std::move(executor)) {}
  Status step(const StepPlan& plan, StepResult& result) override { return executor_->step(plan, result); }
  int32_t vocab_size() const override { return executor_->vocab_size(); }
  std::span<const int32_t> end_of_generation_ids() const override { return executor_->end_of_generation_ids(); }

 private:
  std::shared_ptr<ScriptedExecutor> executor_;
};

struct RigOptions {
  std::vector<std::string> pieces;
  Script script;  ///< none: the hash script
  std::vector<int32_t> end_ids;
  int32_t block_tokens = 4;
  int32_t num_blocks = 256;
  int32_t max_batch = 8;
  int32_t prefill_chunk = 16;
  int32_t max_context = 512;
  size_t max_queued_requests = 4096;
  uint64_t fail_at_call = 0;
  std::shared_ptr<StepGate> gate;
};

/// An engine; at its end it checks that every plan was sound.
struct Rig {
  explicit Rig(const RigOptions& options) : tokenizer(make_byte_tokenizer(options.pieces)) {
    EngineConfig config;
    config.scheduler.max_batch = options.max_batch;
    config.scheduler.prefill_chunk = options.prefill_chunk;
    config.scheduler.max_step_tokens = std::max(options.prefill_chunk, options.max_batch);
    config.scheduler.max_context = options.max_context;
    config.scheduler.kv = {options.block_tokens, {{0, options.num_blocks}}};
    config.max_queued_requests = options.max_queued_requests;
    ScriptedExecutor::Options scripted;
    scripted.kv = config.scheduler.kv;
    scripted.max_slots = options.max_batch;
    scripted.vocab_size = kFirstPieceId + static_cast<int32_t>(options.pieces.size());
    scripted.end_ids = options.end_ids;
    scripted.script = options.script ? options.script : make_hash_script(scripted.vocab_size);
    scripted.fail_at_call = options.fail_at_call;
    scripted.failure = internal_error("scripted failure");
    if (options.gate) scripted.observer = [gate = options.gate](const StepPlan&) { gate->pass(); };
    executor = std::make_shared<ScriptedExecutor>(std::move(scripted));
    auto made = Engine::create(std::make_unique<SharedExecutor>(executor), *tokenizer, config);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    engine = std::move(made).value();
  }
  ~Rig() {
    engine.reset();
    EXPECT_TRUE(executor->first_violation().ok()) << executor->first_violation().to_string();
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  std::unique_ptr<Stream> submit(Request request) {
    auto stream = engine->submit(std::move(request));
    EXPECT_TRUE(stream.ok()) << stream.status().to_string();
    return stream.ok() ? std::move(stream).value() : nullptr;
  }
  /// Sequences that were admitted again with tokens they had generated. Joins the engine.
  int32_t num_resumed() {
    engine.reset();
    int32_t count = 0;
    for (const StepPlan& plan : executor->plans()) {
      for (const SequenceStart& s : plan.starts) count += s.tokens.size() > static_cast<size_t>(s.num_prompt_tokens);
    }
    return count;
  }

  std::unique_ptr<Tokenizer> tokenizer;
  std::shared_ptr<ScriptedExecutor> executor;
  std::unique_ptr<Engine> engine;
};

/// All that a stream brought for one choice.
struct Collected {
  std::string text;
  std::vector<std::string> deltas;
  std::vector<int32_t> ids;
  std::vector<TokenLogprobs> logprobs, prompt_logprobs;
  FinishReason finish = FinishReason::kNone;
  Status error;
  RequestTimings timings;

  void add(const StreamEvent& event) {
    EXPECT_EQ(finish, FinishReason::kNone) << "an event after the last one";
    text += event.text;
    deltas.push_back(event.text);
    ids.insert(ids.end(), event.ids.begin(), event.ids.end());
    logprobs.insert(logprobs.end(), event.logprobs.begin(), event.logprobs.end());
    prompt_logprobs.insert(prompt_logprobs.end(), event.prompt_logprobs.begin(), event.prompt_logprobs.end());
    finish = event.finish;
    error = event.error;
    timings = event.timings;
  }
};

/// Reads a stream to its end: what came, by choice.
inline std::map<int32_t, Collected> collect_choices(Stream& stream) {
  std::map<int32_t, Collected> choices;
  while (const auto event = stream.next()) choices[event->choice_idx].add(*event);
  for (const auto& [index, choice] : choices) EXPECT_NE(choice.finish, FinishReason::kNone) << "choice " << index;
  return choices;
}

inline Collected collect(Stream& stream) {
  auto choices = collect_choices(stream);
  EXPECT_EQ(choices.size(), 1u);
  return choices[0];
}

inline Request make_request(std::vector<int32_t> prompt_ids, int32_t max_tokens, uint64_t seed = 0) {
  Request request;
  request.prompt_ids = std::move(prompt_ids);
  request.sampling.max_tokens = max_tokens;
  request.sampling.seed = seed;
  return request;
}

/// What the script gives a request that meets no end token: the answer without an engine.
inline std::vector<int32_t> scripted_ids(const Script& script, const Request& request, int32_t choice_idx = 0) {
  std::vector<int32_t> tokens = request.prompt_ids;
  const auto num_prompt = static_cast<int32_t>(tokens.size());
  for (int32_t i = 0; i < request.sampling.max_tokens; ++i) {
    tokens.push_back(script({tokens, num_prompt, &request.sampling, choice_idx}));
  }
  tokens.erase(tokens.begin(), tokens.begin() + num_prompt);
  return tokens;
}

}  // namespace pagoda
