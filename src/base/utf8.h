#pragma once
// UTF-8 validation and repair, as Python's bytes.decode("utf-8", errors="replace") does it: one U+FFFD for each maximal
// broken sequence (Unicode 15, section 3.9, "substitution of maximal subparts").

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pagoda {

struct Utf8Char {
  uint32_t code_point = 0xFFFD;
  uint8_t length = 1;   ///< bytes consumed, >= 1
  bool valid = false;   ///< false: the bytes are broken and stand for one U+FFFD
  bool truncated = false;  ///< not valid, but more bytes could complete it
};

/// Decodes the character at the start of `bytes` (not empty).
Utf8Char decode_utf8(std::string_view bytes);
void append_utf8(uint32_t code_point, std::string& out);
bool is_valid_utf8(std::string_view bytes);
/// Valid input comes back unchanged.
std::string repair_utf8(std::string_view bytes);
/// Length of the longest prefix that does not end in the middle of a character that more bytes could complete.
size_t complete_utf8_prefix(std::string_view bytes);

}  // namespace pagoda
