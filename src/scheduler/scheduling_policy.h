#pragma once
// Scheduling policies: one row each. A policy is an order over sequences: the first is served, admitted and kept before
// the last. It must be total (ties by id) and must not let a sequence wait for ever.

#include <cstdint>
#include <span>
#include <string_view>

#include "scheduler/sequence.h"

namespace pagoda {

struct SchedulingPolicy {
  std::string_view name;
  bool (*comes_before)(const Sequence& a, const Sequence& b, int64_t now_us);
};

std::span<const SchedulingPolicy> scheduling_policies();
/// nullptr when there is no such policy.
const SchedulingPolicy* find_scheduling_policy(std::string_view name);

}  // namespace pagoda
