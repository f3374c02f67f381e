// Scheduler: how a step is put together. First tokens and blocks are granted, then the plan is written, because a grant
// can still be taken back by a preemption.

#include <algorithm>

#include "base/check.h"
#include "scheduler/scheduler.h"

namespace pagoda {

int32_t Scheduler::chunk_of(const Sequence& sequence, int32_t budget) const {
  int32_t chunk = std::min({sequence.num_wanted(), config_.prefill_chunk, budget});
  // Recomputed rows that were scored before a preemption go into entries of their own: an entry scores its first rows.
  const bool is_scored_before = sequence.num_computed < sequence.num_prompt_scored;
  const bool is_scoring_left = sequence.num_prompt_scored < sequence.num_prompt_rows();
  if (is_scored_before && is_scoring_left) chunk = std::min(chunk, sequence.num_prompt_scored - sequence.num_computed);
  return chunk;
}

void Scheduler::grant(Sequence& sequence, int32_t& budget) {
  const int32_t wanted = chunk_of(sequence, budget);
  if (wanted <= 0) return;
  int32_t num_tokens = sequence.tables.room(sequence.num_computed, wanted);
  while (num_tokens == 0) {
    Sequence& victim = *running_.back();
    PAGODA_CHECK(running_.size() > 1);  // submit() made sure that one alone has room
    budget += victim.num_granted;
    const bool is_self = &victim == &sequence;
    send_back_to_wait(victim);
    if (is_self) return;
    num_tokens = sequence.tables.room(sequence.num_computed, wanted);
  }
  sequence.tables.reserve(sequence.num_computed + num_tokens);
  sequence.num_granted = num_tokens;
  budget -= num_tokens;
}

bool Scheduler::is_gated(const Sequence& sequence) const {
  if (sequence.choice_idx == 0 || !config_.enable_prefix_cache) return false;
  const Sequence* first = find(sequence.first_choice_id);
  return first != nullptr && !first->is_prompt_done;
}

Sequence* Scheduler::next_waiting(int64_t now_us) const {
  Sequence* best = nullptr;
  for (Sequence* sequence : waiting_) {
    if (best != nullptr && !policy_.comes_before(*sequence, *best, now_us)) continue;
    if (!is_gated(*sequence)) best = sequence;
  }
  return best;
}

// Blocks of `group` for all the tokens the sequence has, and those of one block more, unless it ends before.
int32_t Scheduler::blocks_needed(const Sequence& sequence, int32_t group) const {
  const int64_t num_tokens =
      std::min<int64_t>(int64_t{sequence.num_tokens()} + config_.kv.block_tokens, sequence.max_length - 1);
  const int32_t step_tokens = std::min(config_.prefill_chunk, sequence.num_wanted());
  return std::min(kv_.max_blocks(group, num_tokens, step_tokens), kv_.pool(group).num_blocks());
}

bool Scheduler::has_admission_room(const Sequence& candidate) const {
  if (running_.empty()) return true;
  for (int32_t g = 0; g < kv_.num_groups(); ++g) {
    int64_t promised = 0;
    for (const Sequence* s : running_) promised += std::max(blocks_needed(*s, g) - s->tables.num_held(g), 0);
    const int32_t num_matched =
        static_cast<int32_t>(match_.nodes.size()) - kv_.first_visible_block(g, match_.num_tokens);
    const int32_t num_new = std::max(blocks_needed(candidate, g) - num_matched, 0);
    const int32_t usable = kv_.pool(g).num_available() - candidate.tables.num_unheld(match_, g);
    if (usable < promised + num_new) return false;
  }
  return true;
}

bool Scheduler::try_admit(Sequence& sequence, int32_t& budget, StepPlan& plan) {
  // At least one token must be computed, to have logits; rows still to be scored must be computed as well.
  int32_t max_cached = sequence.num_tokens() - 1;
  if (sequence.num_prompt_scored < sequence.num_prompt_rows()) max_cached = sequence.num_prompt_scored;
  if (!config_.enable_prefix_cache) max_cached = 0;
  kv_.match_prefix(sequence.cache_key, sequence.tokens, max_cached, match_);
  if (!has_admission_room(sequence)) return false;
  sequence.tables.adopt(match_);
  sequence.num_computed = match_.num_tokens;
  const int32_t num_tokens = sequence.tables.room(sequence.num_computed, chunk_of(sequence, budget));
  PAGODA_CHECK(num_tokens > 0);
  sequence.tables.reserve(sequence.num_computed + num_tokens);
  sequence.num_granted = num_tokens;
  budget -= num_tokens;
  if (!sequence.was_admitted) sequence.num_cached = match_.num_tokens;
  sequence.was_admitted = true;

  sequence.slot = free_slots_.back();
  free_slots_.pop_back();
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &sequence));
  running_.push_back(&sequence);
  plan.starts.push_back({sequence.slot, sequence.sampling, sequence.choice_idx, sequence.num_prompt, sequence.tokens});
  return true;
}

void Scheduler::emit(Sequence& sequence, StepPlan& plan) {
  for (int32_t g = 0; g < kv_.num_groups(); ++g) {
    const auto ids_begin = static_cast<int32_t>(plan.block_ids.size());
    const int32_t first_block = sequence.tables.take_new_entries(g, plan.block_ids);
    const auto num_blocks = static_cast<int32_t>(plan.block_ids.size()) - ids_begin;
    if (num_blocks > 0) plan.deltas.push_back({sequence.slot, g, first_block, num_blocks, ids_begin});
  }
  StepEntry entry;
  entry.slot = sequence.slot;
  entry.first_position = sequence.num_computed;
  entry.token_begin = static_cast<int32_t>(plan.tokens.size());
  entry.num_tokens = sequence.num_granted;
  entry.is_sampled = sequence.num_granted == sequence.num_wanted();
  if (sequence.num_computed >= sequence.num_prompt_scored) {
    entry.num_prompt_rows = std::clamp(sequence.num_prompt_rows() - sequence.num_computed, 0, sequence.num_granted);
  }
  const auto first = sequence.tokens.begin() + entry.first_position;
  plan.tokens.insert(plan.tokens.end(), first, first + entry.num_tokens);
  plan.entries.push_back(entry);
  planned_.push_back(&sequence);
}

void Scheduler::plan(int64_t now_us, int32_t budget, StepPlan& plan) {
  PAGODA_CHECK(step_in_flight_ == 0 && budget >= 1);
  plan.clear();
  budget = std::min(budget, config_.max_step_tokens);
  std::sort(running_.begin(), running_.end(),
            [&](const Sequence* a, const Sequence* b) { return policy_.comes_before(*a, *b, now_us); });
  for (Sequence* sequence : running_) {
    sequence->num_granted = 0;
    sequence->tables.release_behind(sequence->num_computed);
  }
  // Preemptions shorten running_ from its end while these loops run.
  const int64_t preemptions_before = num_preemptions_;
  for (size_t i = 0; i < running_.size(); ++i) {
    if (running_[i]->num_wanted() == 1) grant(*running_[i], budget);
  }
  for (size_t i = 0; i < running_.size(); ++i) {
    if (running_[i]->num_wanted() > 1) grant(*running_[i], budget);
  }
  const bool may_admit = num_preemptions_ == preemptions_before;
  while (may_admit && budget > 0 && !free_slots_.empty()) {
    Sequence* sequence = next_waiting(now_us);
    if (sequence == nullptr || !try_admit(*sequence, budget, plan)) break;
  }
  for (Sequence* sequence : running_) {
    if (sequence->num_granted > 0) emit(*sequence, plan);
  }
  if (plan.empty()) return;
  plan.step_id = step_in_flight_ = next_step_id_++;
  plan.ended_slots.assign(ended_slots_.begin(), ended_slots_.end());
  ended_slots_.clear();
}

}  // namespace pagoda
