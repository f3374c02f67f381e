#include "scheduler/step_plan.h"

namespace pagoda {

void StepPlan::clear() {
  step_id = 0;
  ended_slots.clear();
  starts.clear();
  deltas.clear();
  block_ids.clear();
  entries.clear();
  tokens.clear();
}

}  // namespace pagoda
