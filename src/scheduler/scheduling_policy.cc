#include "scheduler/scheduling_policy.h"

namespace pagoda {
namespace {

bool arrived_before(const Sequence& a, const Sequence& b, int64_t /*now_us*/) {
  return a.id < b.id;
}

constexpr SchedulingPolicy kPolicies[] = {
    {"fcfs", arrived_before},
};

}  // namespace

std::span<const SchedulingPolicy> scheduling_policies() {
  return kPolicies;
}

const SchedulingPolicy* find_scheduling_policy(std::string_view name) {
  for (const SchedulingPolicy& policy : kPolicies) {
    if (policy.name == name) return &policy;
  }
  return nullptr;
}

}  // namespace pagoda
