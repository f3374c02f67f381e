#pragma once
// Scheduler: decides what each step computes. Plain data in (requests, cancels, step results), plain data out (plans,
// events); no clock, no threads, no tensors, no model. The same calls in the same order give the same plans.
//
//   while (scheduler.has_work()) {
//     scheduler.plan(now_us, budget, plan);
//     executor.step(plan, result);            // or scheduler.abandon(plan, events) when it failed
//     scheduler.commit(plan, result, events);
//   }
//
// Rules of a step:
//  1. running sequences that need one token get it, so decoding never waits for a prefill;
//  2. what is left of the budget goes to prefills, in policy order, at most prefill_chunk tokens each;
//  3. waiting sequences are admitted in policy order while slots, budget and blocks last. The head of the queue is
//     never overtaken, except while it waits for choice 0 of its request to compute the prompt that they share.
//
// Admission needs blocks for all the candidate's tokens, plus a block to grow by, beyond what the admitted ones still
// need for theirs. So two prompts never share out a pool that holds only one. Generated tokens are not promised room:
// when a running sequence finds none, the last one in policy order is preempted (its blocks are released, it waits
// again with all its tokens, to be recomputed). Nothing is admitted in a step that preempts. Every mix drains: submit
// refuses what cannot fit an empty pool, the first sequence in policy order is never preempted for another, so it ends,
// and its blocks go to the next.
//
// Thread rule: one owner thread.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kv/kv_cache.h"
#include "pagoda/request.h"
#include "pagoda/status.h"
#include "scheduler/scheduling_policy.h"
#include "scheduler/sequence.h"
#include "scheduler/step_plan.h"

namespace pagoda {

struct SchedulerConfig {
  int32_t max_batch = 16;         ///< slots
  int32_t max_step_tokens = 512;  ///< >= max_batch
  int32_t prefill_chunk = 512;    ///< most tokens of one sequence in a step
  int32_t max_context = 0;        ///< prompt and generated tokens of one sequence
  KvConfig kv;
  bool enable_prefix_cache = true;
  std::vector<int32_t> end_of_generation_ids;
  std::string policy = "fcfs";
};

/// A request as the scheduler needs it. Parameters were validated.
struct SequenceRequest {
  uint64_t request_id = 0;  ///< the caller's; returned in events
  std::vector<int32_t> prompt_ids;
  std::shared_ptr<const SamplingParams> sampling;
  std::string cache_namespace;
};

/// What a step brought one sequence.
struct SequenceEvent {
  SequenceId sequence_id = 0;
  uint64_t request_id = 0;
  int32_t choice_idx = 0;
  int32_t token_id = -1;                       ///< -1: none (a chunk of prefill, or an error)
  TokenLogprobs logprobs;                      ///< of token_id
  std::vector<TokenLogprobs> prompt_logprobs;  ///< of consecutive prompt tokens, from token 1 on; choice 0 only
  FinishReason finish = FinishReason::kNone;   ///< kStop: token_id is the end-of-generation or stop id
  int32_t num_prompt_tokens = 0;
  int32_t num_prompt_computed = 0;  ///< cached ones included
  int32_t num_cached_tokens = 0;
  int32_t num_generated = 0;  ///< token_id included
};

class Scheduler {
 public:
  /// kInvalidArgument names the field.
  static Result<std::unique_ptr<Scheduler>> create(SchedulerConfig config);

  /// Queues the request's choices; choice i is sequence (returned id) + i. kInvalidArgument when the prompt leaves no
  /// room for a token in the context, or its longest possible length does not fit the empty pools. max_tokens 0 means
  /// as many as context and pools hold.
  Result<SequenceId> submit(SequenceRequest request);

  /// Ends a sequence now, at any time, also between plan and commit (the step's outcome is dropped). No event follows.
  /// False when it is not there (any more).
  bool cancel(SequenceId id);
  /// The same for a stop string found in its text: of its tokens the first `num_kept` count (prompt included); what was
  /// computed after them does not enter the prefix index.
  bool finish(SequenceId id, int32_t num_kept);
  /// Takes blocks and slot from a running sequence; it waits again and loses nothing but time. False when not running.
  bool preempt(SequenceId id);

  /// Fills `plan` with a step of at most min(budget, max_step_tokens) tokens, budget >= 1. plan.empty() only without
  /// work.
  void plan(int64_t now_us, int32_t budget, StepPlan& plan);
  /// Takes the result of the plan made last. Appends to `events`, in plan order.
  void commit(const StepPlan& plan, StepResult& result, std::vector<SequenceEvent>& events);
  /// The plan made last failed: ends each of its sequences with kError.
  void abandon(const StepPlan& plan, std::vector<SequenceEvent>& events);

  bool has_work() const { return !sequences_.empty(); }
  int32_t num_running() const { return static_cast<int32_t>(running_.size()); }
  int32_t num_waiting() const { return static_cast<int32_t>(waiting_.size()); }
  int64_t num_preemptions() const { return num_preemptions_; }
  const KvCache& kv() const { return kv_; }

 private:
  explicit Scheduler(SchedulerConfig config);

  Result<int32_t> max_length_of(const SequenceRequest& request) const;

  // scheduler_plan.cc
  int32_t chunk_of(const Sequence& sequence, int32_t budget) const;
  void grant(Sequence& sequence, int32_t& budget);
  Sequence* next_waiting(int64_t now_us) const;
  bool is_gated(const Sequence& sequence) const;
  bool try_admit(Sequence& sequence, int32_t& budget, StepPlan& plan);
  bool has_admission_room(const Sequence& candidate) const;
  int32_t blocks_needed(const Sequence& sequence, int32_t group) const;
  void emit(Sequence& sequence, StepPlan& plan);

  void send_back_to_wait(Sequence& sequence);
  void leave_slot(Sequence& sequence);
  void drop_from_step(const Sequence& sequence);
  Sequence* find(SequenceId id) const;

  SequenceEvent make_event(const Sequence& sequence) const;
  void commit_entry(const StepEntry& entry, Sequence& sequence, StepOutcome& outcome,
                    std::vector<SequenceEvent>& events);
  FinishReason finish_reason(const Sequence& sequence, int32_t token) const;
  void publish(Sequence& sequence, int32_t num_tokens);
  void end(Sequence& sequence);

  const SchedulerConfig config_;
  const SchedulingPolicy& policy_;
  KvCache kv_;
  int32_t pool_length_ = 0;  // longest sequence that fits the empty pools

  std::map<SequenceId, std::unique_ptr<Sequence>> sequences_;
  std::vector<Sequence*> running_;  // in policy order
  std::vector<Sequence*> waiting_;
  std::vector<int32_t> free_slots_;
  std::vector<int32_t> ended_slots_;  // for the next plan
  std::vector<Sequence*> planned_;    // by entry of the plan in flight; nullptr: ended since
  uint64_t step_in_flight_ = 0;       // 0: none
  uint64_t next_step_id_ = 1;
  SequenceId next_id_ = 1;
  int64_t num_preemptions_ = 0;
  PrefixMatch match_;  // reused
};

}  // namespace pagoda
