#pragma once
// The normaliser that SentencePiece models carry as a blob: a double-array trie of texts, each with its replacement.
//
// Thread rule: immutable after create; apply may run from many threads.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pagoda/status.h"

namespace pagoda {

class Charsmap {
 public:
  /// Layout of `blob`: u32 little endian size of the trie in bytes, the trie (u32 units), replacements ended by NUL.
  /// An empty blob changes nothing. kDataLoss when the sizes contradict each other.
  static Result<Charsmap> create(std::string_view blob);

  /// The longest known text at each position gives way to its replacement; everything else stays. `text` is valid
  /// UTF-8, and so is the result.
  std::string apply(std::string_view text) const;

 private:
  struct Match {
    size_t length = 0;  // 0: none
    std::string_view replacement;
  };
  Match longest_match(std::string_view text) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace pagoda
