#pragma once
// Transcendental functions in F64 that give the same bits on every machine and with every C library: RoPE tables,
// sampling and log-probabilities are made of them. Built from +, *, /, fma only.
//
// Largest errors, checked by tests/kernels/math_test.cc against long double: exp 1.0 ulp, log 2 ulp, sin and
// cos 1.3e-16 absolute, pow 3e-15 relative for results within [1e-9, 1e9]. Results below the smallest normal number are
// 0. Thread rule: pure functions.

namespace pagoda::math {

double exp(double x);
/// log(0) = -inf; NaN for x < 0.
double log(double x);
/// |x| <= kMaxAngle (a position of 10 million is 1e7); NaN beyond it.
inline constexpr double kMaxAngle = 1099511627776.0;  // 2^40
double sin(double x);
double cos(double x);
/// base > 0.
double pow(double base, double exponent);

}  // namespace pagoda::math
