// A file of its own: inlined into its callers, GCC takes the replacement for a mismatched pair.
#include "largest_allocation.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace pagoda::test {
namespace {
std::atomic<size_t> largest{0};
}  // namespace
size_t largest_allocation() {
  return largest;
}
void reset_largest_allocation() {
  largest = 0;
}
void note_allocation(size_t size) {
  size_t seen = largest;
  while (size > seen && !largest.compare_exchange_weak(seen, size)) {
  }
}
}  // namespace pagoda::test

void* operator new(size_t size) {
  pagoda::test::note_allocation(size);
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t) noexcept {
  std::free(p);
}
