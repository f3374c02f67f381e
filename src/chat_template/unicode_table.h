#pragma once
// The arrays of unicode_table.cc. Ranges are inclusive and rising.

#include <array>
#include <cstdint>

namespace pagoda::jinja::unicode {

struct Range {
  uint32_t first, last;
};
/// Every `stride`-th character of [first, last] maps to itself plus delta.
struct CaseRun {
  uint32_t first, last, stride;
  int32_t delta;
};
/// A character that maps to several.
struct SpecialCase {
  uint32_t code_point;
  const char* text;
};

extern const std::array<Range, 648> kAlpha;
extern const std::array<Range, 206> kNumeric;
extern const std::array<Range, 62> kDecimal;
extern const std::array<Range, 81> kDigit;
extern const std::array<Range, 702> kNotPrintable;
extern const std::array<Range, 668> kLower;
extern const std::array<Range, 651> kUpper;
extern const std::array<CaseRun, 181> kToLower;
extern const std::array<CaseRun, 194> kToUpper;
extern const std::array<CaseRun, 196> kToTitle;
extern const std::array<SpecialCase, 1> kLowerSpecial;
extern const std::array<SpecialCase, 102> kUpperSpecial;
extern const std::array<SpecialCase, 48> kTitleSpecial;

}  // namespace pagoda::jinja::unicode
