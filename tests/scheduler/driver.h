#pragma once
// Driver: runs a Scheduler against the ScriptedExecutor and checks at every step what must always hold.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/scheduler.h"
#include "scripted_executor.h"

namespace pagoda::test {

inline constexpr int32_t kVocab = 97;
inline constexpr int32_t kEnd = 3;

struct Output {
  std::vector<int32_t> ids;
  std::vector<TokenLogprobs> prompt_logprobs;
  FinishReason finish = FinishReason::kNone;
  int32_t num_cached = 0;
  int32_t num_prompt = 0;
};

inline SchedulerConfig make_config(std::vector<KvGroupConfig> groups, int32_t max_batch = 4, int32_t chunk = 64) {
  SchedulerConfig config;
  config.max_batch = max_batch;
  config.prefill_chunk = chunk;
  config.max_step_tokens = std::max(chunk, max_batch);
  config.max_context = 4096;
  config.kv = {16, std::move(groups)};
  config.end_of_generation_ids = {kEnd};
  return config;
}

/// `num` tokens that follow from `seed`; equal seeds share prefixes.
inline std::vector<int32_t> make_prompt(uint64_t seed, int32_t num) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < num; ++i) ids.push_back(static_cast<int32_t>(mix64(seed * 1000003 + i) % kVocab));
  return ids;
}

inline SequenceRequest make_request(std::vector<int32_t> prompt, int32_t max_tokens, SamplingParams sampling = {}) {
  sampling.max_tokens = max_tokens;
  SequenceRequest request;
  request.prompt_ids = std::move(prompt);
  request.sampling = std::make_shared<const SamplingParams>(std::move(sampling));
  return request;
}

class Driver {
 public:
  explicit Driver(const SchedulerConfig& config) : config_(config), executor_(config.kv, config.max_batch, kVocab) {
    Result<std::unique_ptr<Scheduler>> created = Scheduler::create(config);
    EXPECT_TRUE(created.ok()) << created.status().to_string();
    scheduler_ = std::move(created).value();
  }

  Scheduler& scheduler() { return *scheduler_; }
  const StepPlan& last_plan() const { return plan_; }
  std::map<SequenceId, Output>& outputs() { return outputs_; }
  const std::vector<SequenceEvent>& last_events() const { return events_; }
  int32_t num_steps() const { return num_steps_; }

  SequenceId submit(SequenceRequest request) {
    Result<SequenceId> id = scheduler_->submit(std::move(request));
    EXPECT_TRUE(id.ok()) << id.status().to_string();
    return id.ok() ? *id : 0;
  }

  /// First half of a step; false when there is nothing to do.
  bool plan(int32_t budget = 1 << 20) {
    scheduler_->plan(num_steps_, budget, plan_);
    if (plan_.empty()) {
      EXPECT_FALSE(scheduler_->has_work()) << "work is queued and nothing runs";
      return false;
    }
    check_plan(std::min(budget, config_.max_step_tokens));
    return true;
  }
  /// Second half.
  void execute_and_commit() {
    executor_.step(plan_, result_);
    commit();
  }
  void execute() { executor_.step(plan_, result_); }
  void commit() {
    events_.clear();
    scheduler_->commit(plan_, result_, events_);
    for (const SequenceEvent& event : events_) take(event);
    ++num_steps_;
  }
  bool step(int32_t budget = 1 << 20) {
    if (!plan(budget)) return false;
    execute_and_commit();
    return true;
  }
  /// Runs until nothing is left; a mix that does not drain fails.
  void drain(int32_t max_steps = 100000) {
    while (max_steps-- > 0 && step()) {
    }
    EXPECT_FALSE(scheduler_->has_work());
    check_nothing_held();
  }
  void check_nothing_held() {
    const KvCache& kv = scheduler_->kv();
    EXPECT_EQ(scheduler_->num_running() + scheduler_->num_waiting(), 0);
    for (int32_t g = 0; g < kv.num_groups(); ++g) {
      EXPECT_EQ(kv.pool(g).num_held(), 0);
      EXPECT_EQ(kv.pool(g).num_free() + kv.pool(g).num_cached(), config_.kv.groups[g].num_blocks);
    }
  }
  /// A run of this request and no other on an engine with these options.
  static std::vector<Output> solo(SchedulerConfig config, const SequenceRequest& request) {
    Driver driver(config);
    const SequenceId id = driver.submit(request);
    driver.drain();
    std::vector<Output> outputs;
    for (int32_t c = 0; c < request.sampling->num_choices; ++c) outputs.push_back(driver.outputs()[id + c]);
    return outputs;
  }

 private:
  void check_plan(int32_t budget) {
    int32_t total = 0;
    std::set<int32_t> slots;
    for (const StepEntry& e : plan_.entries) {
      EXPECT_GE(e.num_tokens, 1);
      EXPECT_LE(e.num_tokens, std::max(config_.prefill_chunk, 1));
      EXPECT_EQ(e.token_begin, total);
      EXPECT_TRUE(slots.insert(e.slot).second);
      EXPECT_GE(e.slot, 0);
      EXPECT_LT(e.slot, config_.max_batch);
      total += e.num_tokens;
    }
    EXPECT_LE(total, budget);
    EXPECT_EQ(static_cast<size_t>(total), plan_.tokens.size());
    executor_.apply_changes(plan_);
    for (int32_t g = 0; g < scheduler_->kv().num_groups(); ++g) {
      EXPECT_EQ(scheduler_->kv().pool(g).num_held(), executor_.num_held(g)) << "group " << g;
    }
  }

  void take(const SequenceEvent& event) {
    Output& out = outputs_[event.sequence_id];
    EXPECT_EQ(out.finish, FinishReason::kNone) << "an event after the last";
    if (event.token_id >= 0) out.ids.push_back(event.token_id);
    EXPECT_EQ(event.num_generated, static_cast<int32_t>(out.ids.size())) << "a token was lost or sent twice";
    for (const TokenLogprobs& p : event.prompt_logprobs) out.prompt_logprobs.push_back(p);
    out.finish = event.finish;
    out.num_cached = event.num_cached_tokens;
    out.num_prompt = event.num_prompt_tokens;
  }

  const SchedulerConfig config_;
  std::unique_ptr<Scheduler> scheduler_;
  ScriptedExecutor executor_;
  StepPlan plan_;
  StepResult result_;
  std::vector<SequenceEvent> events_;
  std::map<SequenceId, Output> outputs_;
  int32_t num_steps_ = 0;
};

}  // namespace pagoda::test
