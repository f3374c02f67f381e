#pragma once
// What tokenizers ask about a code point, from ICU's tables.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pagoda {

/// The Unicode property White_Space.
bool is_white_space(uint32_t code_point);
/// General categories C*: controls, formats, surrogates, private use, unassigned.
bool is_control(uint32_t code_point);
/// General categories P*, and the ASCII symbols.
bool is_punctuation(uint32_t code_point);
/// General category Mn: accents and other marks that take no space of their own.
bool is_nonspacing_mark(uint32_t code_point);
/// The ideographs that WordPiece models put into words of their own.
bool is_cjk_ideograph(uint32_t code_point);

/// Bytes of white space that valid UTF-8 `text` begins with.
size_t leading_white_space(std::string_view text);
/// Where the white space that ends `text` begins; text.size() when there is none.
size_t trailing_white_space(std::string_view text);

}  // namespace pagoda
