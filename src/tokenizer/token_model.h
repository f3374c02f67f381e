#pragma once
// The algorithm of one kind of vocabulary, behind the Tokenizer: text without special tokens in, ids out.
//
// Thread rule: immutable after create; every call may run from many threads. The TokenizerSpec that a model was made
// from must outlive it.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pagoda/status.h"
#include "tokenizer/tokenizer_spec.h"

namespace pagoda {

class TokenModel {
 public:
  virtual ~TokenModel() = default;

  /// Appends the ids of `text`, which is valid UTF-8 and not empty. `add_prefix`: the dummy space of the normaliser
  /// belongs before this text.
  virtual void encode(std::string_view text, bool add_prefix, std::vector<int32_t>& ids) const = 0;

  /// The bytes of a token of type NORMAL or UNUSED.
  virtual std::string token_bytes(int32_t id) const = 0;

  /// A text of its own starts with the dummy space of the normaliser, which decoding takes away again.
  virtual bool starts_with_dummy_space() const = 0;
};

/// Tokens longer than this never match text: bounds the work per byte that a hostile vocabulary can cause. The longest
/// tokens of real vocabularies are runs of 1024 spaces (2048 bytes as they are spelt).
inline constexpr size_t kMaxMatchBytes = 4096;

/// The byte that a token spelt "<0x41>" stands for, -1 when it is not spelt like that.
int byte_token_value(std::string_view text);

/// Whether encoding text may give tokens of this type: never control, unknown and byte tokens.
inline bool is_matchable(TokenType type) {
  return type == TokenType::kNormal || type == TokenType::kUserDefined || type == TokenType::kUnused;
}

Result<std::unique_ptr<TokenModel>> create_byte_level_bpe(const TokenizerSpec& spec);
Result<std::unique_ptr<TokenModel>> create_sentencepiece_bpe(const TokenizerSpec& spec);
Result<std::unique_ptr<TokenModel>> create_unigram(const TokenizerSpec& spec);
Result<std::unique_ptr<TokenModel>> create_wordpiece(const TokenizerSpec& spec);

}  // namespace pagoda
