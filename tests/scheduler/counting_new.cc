// A file of its own: inlined into its callers, GCC takes the replacement for a mismatched pair.
#include "counting_new.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace pagoda::test {
namespace {
std::atomic<int64_t> counter{0};
}  // namespace
int64_t num_allocations() {
  return counter;
}
void count_allocation() {
  ++counter;
}
}  // namespace pagoda::test

void* operator new(size_t size) {
  pagoda::test::count_allocation();
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t) noexcept {
  std::free(p);
}
