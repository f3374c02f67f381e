#pragma once
// The pre-tokenizers that GGUF files name: how text is cut into words before merges run inside each word.
// One row per name; several names share one rule. A name without a row is a load error.

#include <array>
#include <span>
#include <string_view>

#include "tokenizer/tokenizer_spec.h"

namespace pagoda {

/// One pass over the pieces so far. Each match becomes a piece of its own, and so does each gap between matches.
struct PreTokenizerStep {
  enum class Kind {
    kNone,                 ///< end of the list
    kRegex,                ///< `pattern`; \s and \S mean Unicode White_Space
    kTrailingWhiteSpace,   ///< the white space that ends a piece (by hand: as a regex, \s+$ is quadratic)
  };
  Kind kind = Kind::kNone;
  std::string_view pattern;
};

inline constexpr size_t kMaxPreTokenizerSteps = 6;

struct PreTokenizerRow {
  std::string_view name;
  const std::array<PreTokenizerStep, kMaxPreTokenizerSteps>* steps;
  bool ignore_merges = false;  ///< a word that is a token by itself skips the merges
  bool add_bos = false;        ///< where the file does not say
  bool add_sep = false;        ///< where the file does not say
  bool raw_characters = false;
  NormalizerSpec::Unicode unicode = NormalizerSpec::Unicode::kNone;  ///< what the family's own tokenizer does first
};

/// Null for an unknown name.
const PreTokenizerRow* find_pre_tokenizer(std::string_view name);
/// All rows, for listings and tests.
std::span<const PreTokenizerRow> all_pre_tokenizers();

}  // namespace pagoda
