#include "engine/scripted_executor.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace pagoda {
namespace {

std::string where(const StepEntry& entry) {
  return "slot " + std::to_string(entry.slot) + ", position " + std::to_string(entry.first_position) + ": ";
}

Status wrong(const StepEntry& entry, const std::string& what) {
  return internal_error(where(entry) + what);
}

bool is_inside(int64_t begin, int64_t count, size_t size) {
  return begin >= 0 && count >= 0 && begin + count <= static_cast<int64_t>(size);
}

// First position that the row at `row` sees.
int32_t first_visible(const KvGroupConfig& group, int32_t row) {
  return group.window == 0 ? 0 : std::max(row - group.window + 1, 0);
}

TokenLogprobs made_up_logprobs(int32_t id, int32_t num_top, int32_t vocab_size) {
  TokenLogprobs entry;
  entry.token = {id, ScriptedExecutor::logprob_of(id)};
  for (int32_t top = 0; top < std::min(num_top, vocab_size); ++top) {
    entry.top.push_back({top, ScriptedExecutor::logprob_of(top)});
  }
  return entry;
}

}  // namespace

Script make_fixed_script(std::vector<int32_t> ids) {
  PAGODA_CHECK(!ids.empty());
  return [ids = std::move(ids)](const ScriptContext& context) {
    return ids[(context.tokens.size() - static_cast<size_t>(context.num_prompt_tokens)) % ids.size()];
  };
}

Script make_hash_script(int32_t vocab_size) {
  return [vocab_size](const ScriptContext& context) {
    uint64_t hash = mix64(context.sampling->seed) ^ mix64(static_cast<uint64_t>(context.choice_idx) + 1);
    for (const int32_t token : context.tokens) hash = mix64(hash ^ static_cast<uint64_t>(token));
    return static_cast<int32_t>(hash % static_cast<uint64_t>(vocab_size));
  };
}

ScriptedExecutor::ScriptedExecutor(Options options)
    : options_(std::move(options)), slots_(at(options_.max_slots)), cells_(options_.kv.groups.size()) {
  PAGODA_CHECK(options_.script && options_.kv.block_tokens > 0 && options_.vocab_size > 0);
  for (size_t g = 0; g < cells_.size(); ++g) {
    cells_[g].assign(at(options_.kv.groups[g].num_blocks) * at(options_.kv.block_tokens), 0);
  }
}

// The hash of a position is that of the one before, mixed with the token: never 0, which marks an empty cell.
void ScriptedExecutor::Slot::append(int32_t token) {
  const uint64_t before = hashes.empty() ? 1 : hashes.back();
  tokens.push_back(token);
  hashes.push_back(mix64(before ^ mix64(static_cast<uint64_t>(token) + 1)) | 1);
}

Result<size_t> ScriptedExecutor::cell_index(int32_t slot, int32_t group, int32_t position) const {
  const int32_t block_tokens = options_.kv.block_tokens;
  const std::vector<int32_t>& table = slots_[at(slot)].tables[at(group)];
  const size_t block = at(position / block_tokens);
  if (block >= table.size() || table[block] < 0) {
    return internal_error("slot " + std::to_string(slot) + ": group " + std::to_string(group) +
                          " has no block for position " + std::to_string(position));
  }
  return at(table[block]) * at(block_tokens) + at(position % block_tokens);
}

Status ScriptedExecutor::start(const SequenceStart& start) {
  const std::string name = "start in slot " + std::to_string(start.slot) + ": ";
  if (start.slot < 0 || start.slot >= options_.max_slots) return internal_error(name + "no such slot");
  if (is_live(start.slot)) return internal_error(name + "it is taken");
  if (!start.sampling) return internal_error(name + "no sampling parameters");
  if (start.num_prompt_tokens < 1 || at(start.num_prompt_tokens) > start.tokens.size()) {
    return internal_error(name + std::to_string(start.num_prompt_tokens) + " prompt tokens of " +
                          std::to_string(start.tokens.size()));
  }
  Slot& slot = slots_[at(start.slot)];
  slot = Slot{};
  slot.is_live = true;
  slot.start = start;
  slot.tables.resize(cells_.size());
  for (const int32_t token : start.tokens) slot.append(token);
  return {};
}

Status ScriptedExecutor::apply_delta(const StepPlan& plan, const BlockTableDelta& delta) {
  const std::string name =
      "block table of slot " + std::to_string(delta.slot) + ", group " + std::to_string(delta.group);
  if (!is_live(delta.slot)) return internal_error(name + ": the slot is empty");
  if (delta.group < 0 || delta.group >= num_groups()) return internal_error(name + ": no such group");
  if (delta.first_block < 0 || !is_inside(delta.ids_begin, delta.num_blocks, plan.block_ids.size())) {
    return internal_error(name + ": block ids outside the plan");
  }
  std::vector<int32_t>& table = slots_[at(delta.slot)].tables[at(delta.group)];
  table.resize(std::max(table.size(), at(delta.first_block) + at(delta.num_blocks)), -1);
  for (int32_t i = 0; i < delta.num_blocks; ++i) {
    const int32_t id = plan.block_ids[at(delta.ids_begin + i)];
    int32_t& entry = table[at(delta.first_block + i)];
    if (id < 0 || id >= options_.kv.groups[at(delta.group)].num_blocks) {
      return internal_error(name + ": no such block, " + std::to_string(id));
    }
    if (entry >= 0) return internal_error(name + ": entry " + std::to_string(delta.first_block + i) + " sent twice");
    entry = id;
  }
  return {};
}

Status ScriptedExecutor::apply_changes(const StepPlan& plan) {
  for (const int32_t slot : plan.ended_slots) {
    if (!is_live(slot)) return internal_error("slot " + std::to_string(slot) + " ended, but it is empty");
    slots_[at(slot)] = Slot{};
  }
  for (const SequenceStart& s : plan.starts) PAGODA_RETURN_IF_ERROR(start(s));
  for (const BlockTableDelta& delta : plan.deltas) PAGODA_RETURN_IF_ERROR(apply_delta(plan, delta));
  return {};
}

Status ScriptedExecutor::check_entry(const StepPlan& plan, const StepEntry& entry) const {
  if (!is_live(entry.slot)) return wrong(entry, "the slot is empty");
  const Slot& slot = slots_[at(entry.slot)];
  if (entry.num_tokens < 1 || !is_inside(entry.token_begin, entry.num_tokens, plan.tokens.size())) {
    return wrong(entry, "tokens outside the plan");
  }
  if (!is_inside(entry.first_position, entry.num_tokens, slot.tokens.size())) {
    return wrong(entry, "computes past the " + std::to_string(slot.tokens.size()) + " tokens there are");
  }
  const auto planned = plan.tokens.begin() + entry.token_begin;
  if (!std::equal(planned, planned + entry.num_tokens, slot.tokens.begin() + entry.first_position)) {
    return wrong(entry, "the tokens are not those of the sequence");
  }
  const int32_t end = entry.first_position + entry.num_tokens;
  if (entry.is_sampled && at(end) != slot.tokens.size()) return wrong(entry, "draws before the last token");
  if (entry.num_prompt_rows < 0 || entry.num_prompt_rows > entry.num_tokens ||
      (entry.num_prompt_rows > 0 && entry.first_position + entry.num_prompt_rows >= slot.start.num_prompt_tokens)) {
    return wrong(entry, std::to_string(entry.num_prompt_rows) + " prompt rows");
  }
  return {};
}

// A block has one writer in a step, a slot one entry.
Status ScriptedExecutor::check_writers(const StepPlan& plan) const {
  std::set<int32_t> seen;
  std::set<std::pair<int32_t, size_t>> written;
  const int32_t block_tokens = options_.kv.block_tokens;
  for (const StepEntry& entry : plan.entries) {
    if (!seen.insert(entry.slot).second) return wrong(entry, "a second entry of the slot");
    const int32_t last_block = (entry.first_position + entry.num_tokens - 1) / block_tokens;
    for (int32_t g = 0; g < num_groups(); ++g) {
      for (int32_t block = entry.first_position / block_tokens; block <= last_block; ++block) {
        PAGODA_ASSIGN_OR_RETURN(const size_t cell, cell_index(entry.slot, g, block * block_tokens));
        if (!written.emplace(g, cell).second) return wrong(entry, "writes a block that another entry writes");
      }
    }
  }
  return {};
}

// Every cell before an entry that its rows can see holds what the slot's own tokens put there.
Status ScriptedExecutor::check_visible(const StepPlan& plan) const {
  for (const StepEntry& entry : plan.entries) {
    const Slot& slot = slots_[at(entry.slot)];
    for (int32_t g = 0; g < num_groups(); ++g) {
      const int32_t first = first_visible(options_.kv.groups[at(g)], entry.first_position);
      for (int32_t position = first; position < entry.first_position; ++position) {
        PAGODA_ASSIGN_OR_RETURN(const size_t cell, cell_index(entry.slot, g, position));
        if (cells_[at(g)][cell] == slot.hashes[at(position)]) continue;
        return wrong(entry,
                     "group " + std::to_string(g) + " holds other content at position " + std::to_string(position));
      }
    }
  }
  return {};
}

Status ScriptedExecutor::write_cells(const StepEntry& entry) {
  const Slot& slot = slots_[at(entry.slot)];
  for (int32_t g = 0; g < num_groups(); ++g) {
    for (int32_t i = 0; i < entry.num_tokens; ++i) {
      const int32_t position = entry.first_position + i;
      PAGODA_ASSIGN_OR_RETURN(const size_t cell, cell_index(entry.slot, g, position));
      cells_[at(g)][cell] = slot.hashes[at(position)];
    }
  }
  return {};
}

Status ScriptedExecutor::answer(const StepEntry& entry, StepOutcome& outcome) {
  Slot& slot = slots_[at(entry.slot)];
  const SamplingParams& sampling = *slot.start.sampling;
  for (int32_t row = 0; row < entry.num_prompt_rows; ++row) {
    const int32_t next = slot.tokens[at(entry.first_position + row + 1)];
    outcome.prompt_logprobs.push_back(made_up_logprobs(next, sampling.num_prompt_logprobs, options_.vocab_size));
  }
  if (!entry.is_sampled) return {};
  const int32_t id = options_.script({slot.tokens, slot.start.num_prompt_tokens, &sampling, slot.start.choice_idx});
  if (id < 0 || id >= options_.vocab_size) {
    return wrong(entry, "the script drew token " + std::to_string(id) + ", outside the vocabulary");
  }
  outcome.sampled_id = id;
  if (sampling.num_logprobs >= 0) {
    outcome.logprobs = made_up_logprobs(id, sampling.num_logprobs, options_.vocab_size);
  }
  slot.append(id);
  return {};
}

Status ScriptedExecutor::run(const StepPlan& plan, StepResult& result) {
  PAGODA_RETURN_IF_ERROR(apply_changes(plan));
  for (const StepEntry& entry : plan.entries) PAGODA_RETURN_IF_ERROR(check_entry(plan, entry));
  PAGODA_RETURN_IF_ERROR(check_writers(plan));
  PAGODA_RETURN_IF_ERROR(check_visible(plan));
  if (num_calls_ == options_.fail_at_call) return {};
  for (const StepEntry& entry : plan.entries) PAGODA_RETURN_IF_ERROR(write_cells(entry));
  PAGODA_RETURN_IF_ERROR(check_visible(plan));  // no entry wrote where another one reads
  result.outcomes.assign(plan.entries.size(), {});
  for (size_t i = 0; i < plan.entries.size(); ++i) PAGODA_RETURN_IF_ERROR(answer(plan.entries[i], result.outcomes[i]));
  return {};
}

Status ScriptedExecutor::step(const StepPlan& plan, StepResult& result) {
  ++num_calls_;
  if (options_.observer) options_.observer(plan);
  plans_.push_back(plan);
  Status status = run(plan, result);
  if (!status.ok()) {
    status = status.with_context("step " + std::to_string(plan.step_id));
    if (first_violation_.ok()) first_violation_ = status;
    return status;
  }
  return num_calls_ == options_.fail_at_call ? options_.failure : Status();
}

}  // namespace pagoda
