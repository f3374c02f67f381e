#pragma once
// Text to token ids and back, as the model's file describes it.
//
// Thread rule: a Tokenizer is immutable after create; encode and decode may be called from many threads.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pagoda/status.h"
#include "tokenizer/tokenizer_spec.h"

namespace pagoda {

using TokenId = int32_t;

/// A piece of input text. Only text of a trusted span (template literals) may become tokens of type CONTROL.
struct TextSegment {
  std::string text;
  bool is_trusted = false;
};

struct EncodeOptions {
  bool add_special = true;      ///< add BOS/EOS (CLS/SEP) as the file says
  bool parse_special = false;   ///< texts of CONTROL tokens in the input become those tokens
};

class SpecialTokenMatcher;
class TokenModel;

class Tokenizer {
 public:
  /// kUnimplemented: a tokenizer model or pre-tokenizer Pagoda does not know, by name. kDataLoss: contradictory spec.
  static Result<std::unique_ptr<Tokenizer>> create(TokenizerSpec spec);
  ~Tokenizer();

  /// Bytes that are no UTF-8 become U+FFFD first. Linear-logarithmic in the length of the text.
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const;
  /// A rendered conversation: CONTROL tokens only from trusted segments; USER_DEFINED (non-control added tokens) from
  /// all. BOS is added as the file says unless the rendered text already starts with it.
  std::vector<TokenId> encode_segments(std::span<const TextSegment> segments, const EncodeOptions& options) const;

  /// The raw bytes that one token adds to the text (CONTROL tokens: empty unless `show_special`).
  /// Ids outside the vocabulary give nothing.
  std::string token_bytes(TokenId id, bool show_special) const;
  /// The token as its file spells it ("▁the", "Ġthe", "<|im_end|>").
  std::string_view piece(TokenId id) const;
  /// Whole-sequence decode with the model's decoder rules (leading-space stripping, WordPiece joining); broken UTF-8
  /// becomes U+FFFD.
  std::string decode(std::span<const TokenId> ids, bool show_special) const;

  /// Decoding a text of its own drops one leading space (the dummy space of the normaliser).
  bool drops_leading_space() const;

  const TokenizerSpec& spec() const { return spec_; }
  int32_t vocab_size() const { return static_cast<int32_t>(spec_.tokens.size()); }
  /// Tokens that end generation: EOS, EOT/EOM and what the file lists, ascending.
  std::span<const TokenId> end_of_generation_ids() const { return eog_ids_; }

 private:
  struct Fragment;
  explicit Tokenizer(TokenizerSpec spec);
  void build_matchers();
  void find_end_of_generation_ids();
  std::vector<Fragment> split_special(std::string_view text, std::span<const size_t> trusted_runs) const;

  TokenizerSpec spec_;
  std::vector<TokenId> eog_ids_;
  std::unique_ptr<TokenModel> model_;
  std::unique_ptr<SpecialTokenMatcher> trusted_matcher_;    // CONTROL, UNKNOWN and USER_DEFINED tokens
  std::unique_ptr<SpecialTokenMatcher> untrusted_matcher_;  // USER_DEFINED tokens only
};

/// Turns a stream of token ids into text, never emitting half a character: bytes of an unfinished UTF-8 sequence are
/// held until they complete or prove broken (then U+FFFD, once per maximal broken sequence).
/// Thread rule: one stream, one thread. The tokenizer must outlive it.
class Detokenizer {
 public:
  struct Options {
    bool show_special = false;
    bool strip_leading_space = false;  ///< the stream starts a text of its own (not the continuation of a prompt)
  };
  Detokenizer(const Tokenizer& tokenizer, const Options& options);
  /// Text that became final with this token.
  std::string push(TokenId id);
  /// The rest at the end of the stream.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  Options options_;
  std::string pending_;
  bool at_start_ = true;
};

}  // namespace pagoda
