#pragma once
// Compiler spellings that vector templates need. C-clean.

#ifndef PAGODA_INLINE
#define PAGODA_INLINE inline __attribute__((always_inline))
#endif
// Loops over registers keep their values in registers only when fully unrolled.
#ifndef PAGODA_UNROLL
#if defined(__clang__)
#define PAGODA_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PAGODA_UNROLL _Pragma("GCC unroll 16")
#endif
#endif
