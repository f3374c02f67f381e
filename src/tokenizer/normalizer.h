#pragma once
// The parts of text normalisation that several vocabularies share.

#include <string>
#include <string_view>

#include "tokenizer/tokenizer_spec.h"

namespace pagoda {

/// NFD, for WordPiece vocabularies without accents.
std::string decompose(std::string_view text);
/// Leading and trailing spaces go, runs of spaces become one.
std::string remove_extra_spaces(std::string_view text);
/// NFC or NFKC, then spaces to U+2581, as `spec` says. Accents, case and cleaning belong to WordPiece alone.
std::string normalize_text(const NormalizerSpec& spec, std::string_view text);
std::string escape_spaces(std::string_view text);    ///< ' ' -> U+2581
std::string unescape_spaces(std::string_view text);  ///< U+2581 -> ' '

}  // namespace pagoda
