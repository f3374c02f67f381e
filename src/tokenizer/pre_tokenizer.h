#pragma once
// Cuts text into words by the steps of a pre-tokenizer row.
//
// Thread rule: immutable after create; split may run from many threads.

#include <memory>
#include <string_view>
#include <vector>

#include "pagoda/status.h"
#include "tokenizer/pre_tokenizer_table.h"

namespace pagoda {

class PreTokenizer {
 public:
  /// kUnimplemented: no row of that name.
  static Result<std::unique_ptr<PreTokenizer>> create(std::string_view name);
  ~PreTokenizer();

  /// `ends` becomes the end offsets of the words, rising; the last one is text.size(). Words are never empty.
  /// `text` must be valid UTF-8.
  void split(std::string_view text, std::vector<size_t>& ends) const;

 private:
  class Regex;
  struct Step {
    PreTokenizerStep::Kind kind;
    std::unique_ptr<Regex> regex;  // null unless kRegex
  };
  PreTokenizer();
  std::vector<Step> steps_;
};

}  // namespace pagoda
