#include "scheduler/scheduler.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "kv/cache_key.h"

namespace pagoda {
namespace {

Status check_config(const SchedulerConfig& config) {
  const auto bad = [](const char* field, int64_t value, const std::string& rule) {
    return invalid_argument(std::string("scheduler: ") + field + " is " + std::to_string(value) + "; it must be " +
                            rule);
  };
  if (config.max_batch < 1) return bad("max_batch", config.max_batch, "at least 1");
  if (config.max_step_tokens < config.max_batch) {
    return bad(
        "max_step_tokens", config.max_step_tokens,
        "at least max_batch, " + std::to_string(config.max_batch) + ", so that every sequence gets a token a step");
  }
  if (config.prefill_chunk < 1) return bad("prefill_chunk", config.prefill_chunk, "at least 1");
  if (config.max_context < 2) return bad("max_context", config.max_context, "at least 2");
  if (config.kv.block_tokens < 1) return bad("kv.block_tokens", config.kv.block_tokens, "at least 1");
  if (config.kv.groups.empty()) return bad("kv.groups.size", 0, "at least 1");
  for (const KvGroupConfig& group : config.kv.groups) {
    if (group.num_blocks < 1) return bad("kv.groups.num_blocks", group.num_blocks, "at least 1");
    if (group.window < 0) return bad("kv.groups.window", group.window, "0 (all tokens) or more");
  }
  if (find_scheduling_policy(config.policy) == nullptr) {
    std::string names;
    for (const SchedulingPolicy& p : scheduling_policies()) names += (names.empty() ? "" : ", ") + std::string(p.name);
    return invalid_argument("scheduler: there is no policy \"" + config.policy + "\"; there are: " + names);
  }
  return {};
}

// The longest sequence whose keys and values fit the empty pools. Its last token needs no block: it is never computed.
int32_t longest_that_fits(const KvCache& kv) {
  int64_t longest = std::numeric_limits<int32_t>::max();
  for (int32_t g = 0; g < kv.num_groups(); ++g) {
    const int64_t num_blocks = kv.pool(g).num_blocks();
    const bool is_endless = kv.max_blocks(g, std::numeric_limits<int32_t>::max(), 1) <= num_blocks;
    if (!is_endless) longest = std::min(longest, num_blocks * kv.config().block_tokens + 1);
  }
  return static_cast<int32_t>(longest);
}

}  // namespace

Result<std::unique_ptr<Scheduler>> Scheduler::create(SchedulerConfig config) {
  PAGODA_RETURN_IF_ERROR(check_config(config));
  return std::unique_ptr<Scheduler>(new Scheduler(std::move(config)));
}

Scheduler::Scheduler(SchedulerConfig config)
    : config_(std::move(config)),
      policy_(*find_scheduling_policy(config_.policy)),
      kv_(config_.kv),
      pool_length_(longest_that_fits(kv_)) {
  for (int32_t slot = config_.max_batch - 1; slot >= 0; --slot) free_slots_.push_back(slot);
}

Result<int32_t> Scheduler::max_length_of(const SequenceRequest& request) const {
  const auto num_prompt = static_cast<int64_t>(request.prompt_ids.size());
  const int64_t max_tokens = request.sampling->max_tokens;
  if (num_prompt == 0) return invalid_argument("prompt_ids is empty: a request needs at least one token");
  if (num_prompt >= config_.max_context) {
    return invalid_argument("context length exceeded: the prompt has " + std::to_string(num_prompt) +
                            " tokens and the context holds " + std::to_string(config_.max_context) +
                            ", one of them for an answer; shorten the prompt or raise the context length");
  }
  const int64_t wanted = max_tokens == 0
                             ? std::max<int64_t>(num_prompt + 1, std::min(config_.max_context, pool_length_))
                             : std::min<int64_t>(num_prompt + max_tokens, config_.max_context);
  if (wanted > pool_length_) {
    return invalid_argument("KV cache too small for this request: it may reach " + std::to_string(wanted) +
                            " tokens (" + std::to_string(num_prompt) + " of prompt) and the cache holds " +
                            std::to_string(pool_length_) +
                            " of one request; shorten the prompt, lower max_tokens or give the KV cache more memory");
  }
  return static_cast<int32_t>(wanted);
}

Result<SequenceId> Scheduler::submit(SequenceRequest request) {
  PAGODA_CHECK(request.sampling != nullptr);
  PAGODA_ASSIGN_OR_RETURN(const int32_t max_length, max_length_of(request));
  CacheKey key;
  key.add(CacheKeyPart::kNamespace, request.cache_namespace);
  const SequenceId first_id = next_id_;
  for (int32_t choice = 0; choice < request.sampling->num_choices; ++choice) {
    auto sequence = std::make_unique<Sequence>(kv_, next_id_++);
    sequence->request_id = request.request_id;
    sequence->choice_idx = choice;
    sequence->first_choice_id = first_id;
    sequence->sampling = request.sampling;
    sequence->cache_key = key.bytes();
    sequence->tokens = request.prompt_ids;
    sequence->num_prompt = sequence->num_tokens();
    sequence->max_length = max_length;
    waiting_.push_back(sequence.get());
    sequences_.emplace(sequence->id, std::move(sequence));
  }
  return first_id;
}

Sequence* Scheduler::find(SequenceId id) const {
  const auto it = sequences_.find(id);
  return it == sequences_.end() ? nullptr : it->second.get();
}

bool Scheduler::cancel(SequenceId id) {
  Sequence* sequence = find(id);
  if (sequence == nullptr) return false;
  drop_from_step(*sequence);
  end(*sequence);
  return true;
}

bool Scheduler::finish(SequenceId id, int32_t num_kept) {
  Sequence* sequence = find(id);
  if (sequence == nullptr) return false;
  publish(*sequence, std::min(sequence->num_computed, num_kept));
  return cancel(id);
}

bool Scheduler::preempt(SequenceId id) {
  Sequence* sequence = find(id);
  if (sequence == nullptr || sequence->slot < 0) return false;
  drop_from_step(*sequence);
  send_back_to_wait(*sequence);
  return true;
}

void Scheduler::drop_from_step(const Sequence& sequence) {
  std::replace(planned_.begin(), planned_.end(), const_cast<Sequence*>(&sequence), static_cast<Sequence*>(nullptr));
}

void Scheduler::leave_slot(Sequence& sequence) {
  running_.erase(std::find(running_.begin(), running_.end(), &sequence));
  sequence.tables.release();
  ended_slots_.push_back(sequence.slot);
  free_slots_.push_back(sequence.slot);
  sequence.slot = -1;
}

void Scheduler::send_back_to_wait(Sequence& sequence) {
  leave_slot(sequence);
  sequence.num_computed = 0;
  sequence.num_granted = 0;
  waiting_.push_back(&sequence);
  ++num_preemptions_;
}

void Scheduler::end(Sequence& sequence) {
  if (sequence.slot >= 0) {
    leave_slot(sequence);
  } else {
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &sequence));
  }
  sequences_.erase(sequence.id);
}

void Scheduler::publish(Sequence& sequence, int32_t num_tokens) {
  if (!config_.enable_prefix_cache || num_tokens <= 0) return;
  sequence.tables.publish(sequence.cache_key, std::span(sequence.tokens).first(num_tokens));
}

SequenceEvent Scheduler::make_event(const Sequence& sequence) const {
  SequenceEvent event;
  event.sequence_id = sequence.id;
  event.request_id = sequence.request_id;
  event.choice_idx = sequence.choice_idx;
  event.num_prompt_tokens = sequence.num_prompt;
  event.num_prompt_computed =
      sequence.is_prompt_done ? sequence.num_prompt : std::min(sequence.num_computed, sequence.num_prompt);
  event.num_cached_tokens = sequence.num_cached;
  event.num_generated = sequence.num_generated();
  return event;
}

FinishReason Scheduler::finish_reason(const Sequence& sequence, int32_t token) const {
  const SamplingParams& sampling = *sequence.sampling;
  const auto contains = [token](const std::vector<int32_t>& ids) {
    return std::find(ids.begin(), ids.end(), token) != ids.end();
  };
  const bool may_stop = sequence.num_generated() > sampling.min_tokens;
  if (may_stop && !sampling.ignore_eos && contains(config_.end_of_generation_ids)) return FinishReason::kStop;
  if (may_stop && contains(sampling.stop_ids)) return FinishReason::kStop;
  return sequence.num_tokens() >= sequence.max_length ? FinishReason::kLength : FinishReason::kNone;
}

void Scheduler::commit_entry(const StepEntry& entry, Sequence& sequence, StepOutcome& outcome,
                             std::vector<SequenceEvent>& events) {
  sequence.num_computed += entry.num_tokens;
  sequence.num_prompt_scored += entry.num_prompt_rows;
  sequence.is_prompt_done = sequence.is_prompt_done || sequence.num_computed >= sequence.num_prompt;
  // A stop string is found later than its tokens are computed: what was generated is published by finish(), if at all.
  publish(sequence, sequence.sampling->stop.empty() ? sequence.num_computed
                                                    : std::min(sequence.num_computed, sequence.num_prompt));
  FinishReason reason = FinishReason::kNone;
  const bool has_token = entry.is_sampled && outcome.sampled_id >= 0;
  if (has_token) {
    sequence.tokens.push_back(outcome.sampled_id);
    reason = finish_reason(sequence, outcome.sampled_id);
  } else if (entry.is_sampled) {
    reason = FinishReason::kError;  // nothing could be drawn: this sequence ends, its neighbours go on
  }
  SequenceEvent event = make_event(sequence);
  event.finish = reason;
  event.prompt_logprobs = std::move(outcome.prompt_logprobs);
  if (has_token) {
    event.token_id = outcome.sampled_id;
    event.logprobs = std::move(outcome.logprobs);
  }
  events.push_back(std::move(event));
  if (reason != FinishReason::kNone) end(sequence);
}

void Scheduler::commit(const StepPlan& plan, StepResult& result, std::vector<SequenceEvent>& events) {
  PAGODA_CHECK(!plan.empty() && plan.step_id == step_in_flight_);
  PAGODA_CHECK(result.outcomes.size() == plan.entries.size());
  step_in_flight_ = 0;
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    if (planned_[i] != nullptr) commit_entry(plan.entries[i], *planned_[i], result.outcomes[i], events);
  }
  planned_.clear();
}

void Scheduler::abandon(const StepPlan& plan, std::vector<SequenceEvent>& events) {
  PAGODA_CHECK(!plan.empty() && plan.step_id == step_in_flight_);
  step_in_flight_ = 0;
  for (Sequence* sequence : planned_) {
    if (sequence == nullptr) continue;
    events.push_back(make_event(*sequence));
    events.back().finish = FinishReason::kError;
    end(*sequence);
  }
  planned_.clear();
}

}  // namespace pagoda
