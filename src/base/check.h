#pragma once
// PAGODA_CHECK: a condition that only a bug in Pagoda can break. Always on; never used on user input.

namespace pagoda {
/// Prints the failed condition to standard error and aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}  // namespace pagoda

#define PAGODA_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::pagoda::check_failed(#condition, __FILE__, __LINE__))

#ifdef NDEBUG
#define PAGODA_DCHECK(condition) void(0)
#else
#define PAGODA_DCHECK(condition) PAGODA_CHECK(condition)
#endif
