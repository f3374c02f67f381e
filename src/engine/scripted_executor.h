#pragma once
// ScriptedExecutor: an executor without a model, for tests of the engine. It draws each token from a script, a pure
// function of the token history, and checks every plan: a plan that a real executor would compute wrongly is an error
// here.
//
// What it checks: slots taken and left in turn; block ids in range, table entries sent once; the tokens, positions and
// rows of each entry; and, for every position that an entry's rows can see, that the blocks hold what the slot's own
// tokens put there. For the last it keeps, for each cell of each block, a hash of the tokens up to the one computed
// there: a block that two sequences share without an equal, computed prefix, or that was given away too early, has the
// wrong hash.
//
// Thread rule: the engine thread; reading plans() needs that thread to have ended or to stand in the observer.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/executor.h"
#include "kv/kv_config.h"

namespace pagoda {

/// What the next token is drawn from.
struct ScriptContext {
  std::span<const int32_t> tokens;  ///< prompt, then output so far
  int32_t num_prompt_tokens = 0;
  const SamplingParams* sampling = nullptr;
  int32_t choice_idx = 0;
};

using Script = std::function<int32_t(const ScriptContext& context)>;

/// Output token i is ids[i]; after the last one it starts again.
Script make_fixed_script(std::vector<int32_t> ids);
/// A hash of the whole history, the seed and the choice, in [0, vocab_size).
Script make_hash_script(int32_t vocab_size);

class ScriptedExecutor : public Executor {
 public:
  struct Options {
    KvConfig kv;
    int32_t max_slots = 16;
    int32_t vocab_size = 256;
    std::vector<int32_t> end_ids;
    Script script;
    uint64_t fail_at_call = 0;  ///< this call of step() (from 1) gives `failure` and draws nothing; 0: none
    Status failure;
    std::function<void(const StepPlan&)> observer = nullptr;  ///< called first in every step; may block
  };
  explicit ScriptedExecutor(Options options);

  /// kInternal when the plan is wrong: the message names step, slot and position.
  Status step(const StepPlan& plan, StepResult& result) override;
  int32_t vocab_size() const override { return options_.vocab_size; }
  std::span<const int32_t> end_of_generation_ids() const override { return options_.end_ids; }

  const std::vector<StepPlan>& plans() const { return plans_; }
  /// The first inconsistency found in any plan; ok when there was none.
  const Status& first_violation() const { return first_violation_; }

  /// The made-up log-probability of a token: falling with its id, so the most likely are 0, 1, 2, ...
  static float logprob_of(int32_t id) { return -static_cast<float>(id + 1) / 64.0f; }

 private:
  struct Slot {
    bool is_live = false;
    SequenceStart start;
    std::vector<int32_t> tokens;
    std::vector<uint64_t> hashes;              // [tokens]: of tokens 0..i
    std::vector<std::vector<int32_t>> tables;  // [group][block], -1: none

    void append(int32_t token);
  };

  Status run(const StepPlan& plan, StepResult& result);
  Status apply_changes(const StepPlan& plan);
  Status start(const SequenceStart& start);
  Status apply_delta(const StepPlan& plan, const BlockTableDelta& delta);
  Status check_entry(const StepPlan& plan, const StepEntry& entry) const;
  Status check_writers(const StepPlan& plan) const;
  Status check_visible(const StepPlan& plan) const;
  Status write_cells(const StepEntry& entry);
  Status answer(const StepEntry& entry, StepOutcome& outcome);
  bool is_live(int32_t slot) const { return slot >= 0 && slot < options_.max_slots && slots_[at(slot)].is_live; }
  /// The cell of a position in a slot's table; kInternal when the table has no block there.
  Result<size_t> cell_index(int32_t slot, int32_t group, int32_t position) const;
  int32_t num_groups() const { return static_cast<int32_t>(options_.kv.groups.size()); }
  static size_t at(int32_t index) { return static_cast<size_t>(index); }

  const Options options_;
  std::vector<Slot> slots_;
  std::vector<std::vector<uint64_t>> cells_;  // [group][block * block_tokens + offset]
  std::vector<StepPlan> plans_;
  Status first_violation_;
  uint64_t num_calls_ = 0;
};

}  // namespace pagoda
