#include "tokenizer/unicode_class.h"

#include <unicode/uchar.h>

#include "base/utf8.h"

namespace pagoda {
namespace {

UChar32 to_icu(uint32_t code_point) { return static_cast<UChar32>(code_point); }

}  // namespace

bool is_white_space(uint32_t code_point) { return u_isUWhiteSpace(to_icu(code_point)); }

bool is_control(uint32_t code_point) {
  constexpr uint32_t kOther = U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CN_MASK | U_GC_CO_MASK | U_GC_CS_MASK;
  return (U_GET_GC_MASK(to_icu(code_point)) & kOther) != 0;
}

bool is_punctuation(uint32_t code_point) {
  if (code_point < 0x80) {
    return (code_point >= 0x21 && code_point <= 0x2F) || (code_point >= 0x3A && code_point <= 0x40) ||
           (code_point >= 0x5B && code_point <= 0x60) || (code_point >= 0x7B && code_point <= 0x7E);
  }
  return (U_GET_GC_MASK(to_icu(code_point)) & U_GC_P_MASK) != 0;
}

bool is_nonspacing_mark(uint32_t code_point) { return (U_GET_GC_MASK(to_icu(code_point)) & U_GC_MN_MASK) != 0; }

bool is_cjk_ideograph(uint32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

size_t leading_white_space(std::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    const Utf8Char c = decode_utf8(text.substr(end));
    if (!is_white_space(c.code_point)) break;
    end += c.length;
  }
  return end;
}

size_t trailing_white_space(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    size_t previous = begin - 1;
    while (previous > 0 && (static_cast<uint8_t>(text[previous]) & 0xC0) == 0x80) --previous;
    if (!is_white_space(decode_utf8(text.substr(previous)).code_point)) break;
    begin = previous;
  }
  return begin;
}

}  // namespace pagoda
