#pragma once
// ScriptedExecutor: a model without numbers. A token's "keys and values" are a hash of the token and of what the cache
// holds for the token before it; a sampled token is a hash of everything its row can see. So the output is a pure
// function of the token history exactly as long as every block table and every cached block is right.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/random.h"
#include "kv/kv_config.h"
#include "scheduler/step_plan.h"

namespace pagoda::test {

class ScriptedExecutor {
 public:
  ScriptedExecutor(KvConfig kv, int32_t max_batch, int32_t vocab_size)
      : kv_(std::move(kv)), vocab_size_(vocab_size), slots_(max_batch), content_(kv_.groups.size()) {
    for (size_t g = 0; g < content_.size(); ++g) {
      content_[g].assign(size_t{1} * kv_.groups[g].num_blocks * kv_.block_tokens, 0);
    }
  }

  void step(const StepPlan& plan, StepResult& result) {
    apply_changes(plan);
    check_held_blocks_are_disjoint_writes(plan);
    result.outcomes.assign(plan.entries.size(), {});
    for (size_t i = 0; i < plan.entries.size(); ++i) run(plan, plan.entries[i], result.outcomes[i]);
  }

  /// Distinct blocks that the live slots hold, by what the plans said.
  int32_t num_held(int32_t group) const {
    std::set<int32_t> ids;
    for (const Slot& slot : slots_) {
      if (!slot.is_live) continue;
      const auto& table = slot.tables[group];
      for (auto it = table.lower_bound(first_visible(group, slot.planned_position)); it != table.end(); ++it) {
        ids.insert(it->second);
      }
    }
    return static_cast<int32_t>(ids.size());
  }
  void apply_changes(const StepPlan& plan) {
    if (plan.step_id == applied_step_) return;
    applied_step_ = plan.step_id;
    for (const int32_t slot : plan.ended_slots) {
      EXPECT_TRUE(slots_[slot].is_live) << "slot " << slot << " ended twice";
      slots_[slot] = Slot{};
    }
    for (const SequenceStart& start : plan.starts) {
      Slot& slot = slots_[start.slot];
      EXPECT_FALSE(slot.is_live) << "slot " << start.slot << " taken while in use";
      slot = Slot{};
      slot.is_live = true;
      slot.tables.resize(kv_.groups.size());
      slot.sampling = start.sampling;
      slot.choice_idx = start.choice_idx;
      slot.num_prompt = start.num_prompt_tokens;
      slot.tokens = start.tokens;
    }
    for (const BlockTableDelta& d : plan.deltas) {
      for (int32_t i = 0; i < d.num_blocks; ++i) {
        const int32_t id = plan.block_ids[d.ids_begin + i];
        EXPECT_GE(id, 0);
        EXPECT_LT(id, kv_.groups[d.group].num_blocks);
        EXPECT_TRUE(slots_[d.slot].tables[d.group].emplace(d.first_block + i, id).second) << "entry sent twice";
      }
    }
    for (const StepEntry& e : plan.entries) slots_[e.slot].planned_position = e.first_position;
    for (Slot& slot : slots_) slot.planned_position = std::max(slot.planned_position, slot.next_position);
  }

 private:
  struct Slot {
    bool is_live = false;
    std::shared_ptr<const SamplingParams> sampling;
    int32_t choice_idx = 0;
    int32_t num_prompt = 0;
    int32_t next_position = 0;
    int32_t planned_position = 0;
    std::vector<int32_t> tokens;
    std::vector<std::map<int32_t, int32_t>> tables;  // [group]: entry -> block id
  };

  int32_t first_visible(int32_t group, int32_t position) const {
    const int32_t window = kv_.groups[group].window;
    return window == 0 ? 0 : std::max(position - window + 1, 0) / kv_.block_tokens;
  }

  uint64_t& cell(const Slot& slot, int32_t group, int32_t position) {
    const auto it = slot.tables[group].find(position / kv_.block_tokens);
    if (it == slot.tables[group].end()) {
      ADD_FAILURE() << "no block for position " << position << " in group " << group;
      static uint64_t nowhere = 0;
      return nowhere;
    }
    return content_[group][size_t{1} * it->second * kv_.block_tokens + position % kv_.block_tokens];
  }

  bool sees(int32_t group, int32_t row, int32_t position) const {
    const int32_t window = kv_.groups[group].window;
    return position >= 0 && (window == 0 || position > row - window);
  }

  uint64_t see_all(const Slot& slot, int32_t row) {
    uint64_t hash = 1;
    for (int32_t g = 0; g < static_cast<int32_t>(content_.size()); ++g) {
      for (int32_t p = row; sees(g, row, p); --p) hash = mix64(hash ^ cell(slot, g, p));
    }
    return hash;
  }

  void check_held_blocks_are_disjoint_writes(const StepPlan& plan) {
    std::set<std::pair<int32_t, int32_t>> written;  // (group, block)
    for (const StepEntry& e : plan.entries) {
      for (int32_t g = 0; g < static_cast<int32_t>(content_.size()); ++g) {
        const int32_t last = (e.first_position + e.num_tokens - 1) / kv_.block_tokens;
        for (int32_t b = e.first_position / kv_.block_tokens; b <= last; ++b) {
          EXPECT_TRUE(written.emplace(g, slots_[e.slot].tables[g].at(b)).second) << "two sequences write one block";
        }
      }
    }
  }

  void run(const StepPlan& plan, const StepEntry& e, StepOutcome& outcome) {
    Slot& slot = slots_[e.slot];
    ASSERT_TRUE(slot.is_live);
    for (int32_t i = 0; i < e.num_tokens; ++i) {
      const int32_t position = e.first_position + i;
      const int32_t token = plan.tokens[e.token_begin + i];
      ASSERT_EQ(token, slot.tokens.at(position));
      uint64_t value = mix64(static_cast<uint64_t>(token) + 1);
      for (int32_t g = 0; g < static_cast<int32_t>(content_.size()); ++g) {
        if (sees(g, position, position - 1)) value = mix64(value ^ cell(slot, g, position - 1));
      }
      for (int32_t g = 0; g < static_cast<int32_t>(content_.size()); ++g) cell(slot, g, position) = value;
      if (i >= e.num_prompt_rows) continue;
      ASSERT_LT(position + 1, slot.num_prompt);
      TokenLogprobs scored;
      scored.token = {slot.tokens[position + 1], -static_cast<float>(see_all(slot, position) % 1000)};
      outcome.prompt_logprobs.push_back(scored);
    }
    slot.next_position = e.first_position + e.num_tokens;
    if (!e.is_sampled) return;
    ASSERT_EQ(static_cast<size_t>(slot.next_position), slot.tokens.size());
    const uint64_t draw = see_all(slot, slot.next_position - 1) ^ mix64(slot.sampling->seed) ^
                          mix64(static_cast<uint64_t>(slot.choice_idx) + 77);
    outcome.sampled_id = static_cast<int32_t>(mix64(draw) % static_cast<uint64_t>(vocab_size_));
    slot.tokens.push_back(outcome.sampled_id);
  }

  const KvConfig kv_;
  const int32_t vocab_size_;
  std::vector<Slot> slots_;
  std::vector<std::vector<uint64_t>> content_;  // [group][block * block_tokens + offset]
  uint64_t applied_step_ = 0;
};

}  // namespace pagoda::test
