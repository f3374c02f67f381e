#pragma once
// Executor: carries out a StepPlan. The model's executor computes; the scripted one answers from a table, so that
// scheduler and engine are tested without a model.
//
// Thread rule: called from the engine thread only.

#include <cstdint>
#include <span>

#include "pagoda/status.h"
#include "scheduler/step_plan.h"

namespace pagoda {

class Executor {
 public:
  virtual ~Executor() = default;
  /// Runs the plan and fills result.outcomes (one per entry, in order). An error ends every sequence of the plan.
  virtual Status step(const StepPlan& plan, StepResult& result) = 0;
  virtual int32_t vocab_size() const = 0;
  virtual std::span<const int32_t> end_of_generation_ids() const = 0;
};

}  // namespace pagoda
