#pragma once
// Counts the test program's allocations: counting_new.cc replaces operator new.

#include <cstdint>

namespace pagoda::test {
int64_t num_allocations();
}  // namespace pagoda::test
