#include "engine/model_executor.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"

namespace pagoda {

ModelExecutor::ModelExecutor(std::unique_ptr<Decoder> decoder, KvStore kv, std::vector<int32_t> end_ids,
                             const ModelConfig& config, const KernelTable& kernels, ThreadTeam& team)
    : decoder_(std::move(decoder)),
      kv_(std::move(kv)),
      end_ids_(std::move(end_ids)),
      vocab_size_(config.vocab_size),
      kernels_(kernels),
      team_(team) {
  const DecoderLimits& limits = decoder_->limits();
  const int32_t max_blocks = ceil_div(limits.max_context, kv_.layout().block_tokens) + 1;
  slots_.resize(limits.max_sequences);
  for (Slot& slot : slots_) {
    slot.tables.assign(kv_.groups().size(), std::vector<int32_t>(max_blocks, 0));
    for (const auto& table : slot.tables) slot.table_pointers.push_back(table.data());
  }
  for (int i = 0; i < team.size(); ++i) scratch_.emplace_back(vocab_size_);
  sequences_.reserve(limits.max_sequences);
  rows_.reserve(limits.max_logit_rows);
}

void ModelExecutor::start(const SequenceStart& start) {
  Slot& slot = slots_[start.slot];
  slot.sampling = start.sampling;
  slot.tokens = start.tokens;
  slot.sampler = std::make_unique<SequenceSampler>(start.sampling, start.choice_idx, end_ids_, vocab_size_);
  slot.sampler->reset(start.tokens, start.num_prompt_tokens);
}

void ModelExecutor::apply_changes(const StepPlan& plan) {
  for (const int32_t slot : plan.ended_slots) slots_[slot].sampler.reset();
  for (const SequenceStart& s : plan.starts) start(s);
  for (const BlockTableDelta& d : plan.deltas) {
    std::copy_n(plan.block_ids.begin() + d.ids_begin, d.num_blocks, slots_[d.slot].tables[d.group].begin() + d.first_block);
  }
}

StepBatch ModelExecutor::pack(const StepPlan& plan) {
  sequences_.clear();
  jobs_.clear();
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    const StepEntry& e = plan.entries[i];
    sequences_.push_back({e.token_begin, e.num_tokens, e.first_position, slots_[e.slot].table_pointers.data()});
    for (int32_t r = 0; r < e.num_prompt_rows; ++r) jobs_.push_back({static_cast<int32_t>(i), e.token_begin + r, r});
    if (e.is_sampled) jobs_.push_back({static_cast<int32_t>(i), e.token_begin + e.num_tokens - 1, -1});
  }
  return {plan.tokens, sequences_};
}

void ModelExecutor::finish_row(const StepPlan& plan, const RowJob& job, std::span<const float> logits,
                                 SamplerScratch& scratch, StepResult& result) {
  const StepEntry& entry = plan.entries[job.entry];
  Slot& slot = slots_[entry.slot];
  StepOutcome& outcome = result.outcomes[job.entry];
  if (job.prompt_row >= 0) {
    const int32_t next = slot.tokens[entry.first_position + job.prompt_row + 1];
    outcome.prompt_logprobs[job.prompt_row] =
        compute_logprobs(logits, next, slot.sampling->num_prompt_logprobs, *kernels_.vector);
    return;
  }
  const int64_t position = int64_t{entry.first_position} + entry.num_tokens;
  outcome.sampled_id = slot.sampler->sample(logits, position, scratch, *kernels_.vector);
  if (outcome.sampled_id == kNoToken) return;  // the scheduler ends the sequence
  if (slot.sampling->num_logprobs >= 0) {
    outcome.logprobs = compute_logprobs(logits, outcome.sampled_id, slot.sampling->num_logprobs, *kernels_.vector);
  }
}

void ModelExecutor::finish_rows(const StepPlan& plan, StepResult& result) {
  const auto limit = static_cast<size_t>(decoder_->limits().max_logit_rows);
  for (size_t begin = 0; begin < jobs_.size(); begin += limit) {
    const size_t count = std::min(limit, jobs_.size() - begin);
    rows_.clear();
    for (size_t i = 0; i < count; ++i) rows_.push_back(jobs_[begin + i].row);
    decoder_->compute_logits(rows_);
    const auto logits_of = [&](size_t i) {
      return std::span<const float>(decoder_->logits() + i * vocab_size_, static_cast<size_t>(vocab_size_));
    };
    team_.parallel_for(static_cast<int64_t>(count), 1, [&](int64_t first, int64_t last, int member) {
      for (int64_t i = first; i < last; ++i) {
        finish_row(plan, jobs_[begin + i], logits_of(i), scratch_[member], result);
      }
    });
    if (!observer_) continue;
    for (size_t i = 0; i < count; ++i) {
      const StepEntry& e = plan.entries[jobs_[begin + i].entry];
      if (jobs_[begin + i].prompt_row < 0) observer_(e.slot, int64_t{e.first_position} + e.num_tokens, logits_of(i));
    }
  }
}

Status ModelExecutor::step(const StepPlan& plan, StepResult& result) {
  apply_changes(plan);
  result.outcomes.resize(plan.entries.size());
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    result.outcomes[i].sampled_id = -1;
    result.outcomes[i].prompt_logprobs.resize(plan.entries[i].num_prompt_rows);
  }
  if (plan.empty()) return {};
  decoder_->forward(pack(plan), kv_);
  finish_rows(plan, result);
  return {};
}

}  // namespace pagoda
