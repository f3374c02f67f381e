#pragma once
// TokenizerSpec: a tokenizer as data. Readers of every format (GGUF today, tokenizer.json later) fill the same struct;
// the algorithms (bpe, sentencepiece bpe, unigram, wordpiece) read nothing else.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pagoda/status.h"

namespace pagoda {

class GgufFile;

enum class TokenizerModel { kByteLevelBpe, kSentencePieceBpe, kUnigram, kWordPiece };

enum class TokenType : uint8_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

struct TokenEntry {
  std::string text;     ///< as the file spells it
  float score = 0.0f;
  TokenType type = TokenType::kNormal;
  bool strip_left = false;   ///< an added token that swallows white space before it
  bool strip_right = false;
};

/// What happens to text before it is split. Applied in the order of the members.
struct NormalizerSpec {
  enum class Unicode { kNone, kNfc, kNfkc };
  Unicode unicode = Unicode::kNone;
  bool lowercase = false;
  bool strip_accents = false;
  bool clean_text = false;            ///< WordPiece: drop control characters, white space becomes a space
  bool escape_spaces = false;         ///< space becomes U+2581
  bool add_space_prefix = false;      ///< a dummy space before the text
  bool prefix_every_segment = false;  ///< also before each segment that follows a special token
  bool remove_extra_spaces = false;
  std::string precompiled_charsmap;   ///< SentencePiece normaliser blob (unigram models), may be empty
};

struct TokenizerSpec {
  TokenizerModel model = TokenizerModel::kByteLevelBpe;
  std::string pre_tokenizer;          ///< GGUF name of the pre-tokenizer row ("llama-bpe"); empty where none applies
  std::vector<TokenEntry> tokens;     ///< indexed by id
  std::vector<std::string> merges;    ///< "left right", best first (byte-level BPE)
  NormalizerSpec normalizer;
  /// BPE over the characters of the text as they are, with byte tokens ("<0x41>") for characters that are no token;
  /// otherwise the vocabulary is spelt in the byte alphabet, where every byte is a character.
  bool raw_characters = false;
  bool byte_fallback = false;
  std::string word_prefix;            ///< WordPiece: how a word's first piece is marked ("▁" in GGUF files, else empty)
  std::string continuation_prefix;    ///< WordPiece: how its further pieces are marked ("##", else empty)
  bool ignore_merges = false;         ///< a word that is a token by itself skips the merges

  std::optional<int32_t> bos_id, eos_id, unk_id, sep_id, pad_id, cls_id, mask_id, eot_id, eom_id;
  std::vector<int32_t> extra_eog_ids; ///< further ids that end generation
  bool add_bos = false;
  bool add_eos = false;
  bool add_sep = false;
};

/// From `tokenizer.ggml.*` metadata. Every id is checked against the vocabulary, every array against the others.
/// kNotFound when the file has no tokenizer at all.
Result<TokenizerSpec> tokenizer_spec_from_gguf(const GgufFile& file);

/// What every reader owes the algorithms, checked in one place: ids inside the vocabulary, no text twice, sizes within
/// limits. kDataLoss names the field.
Status check_tokenizer_spec(const TokenizerSpec& spec);

}  // namespace pagoda
