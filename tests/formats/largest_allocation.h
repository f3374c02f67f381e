#pragma once
#include <cstddef>

namespace pagoda::test {
/// Bytes of the largest single `new` since the last reset.
size_t largest_allocation();
void reset_largest_allocation();
}  // namespace pagoda::test
