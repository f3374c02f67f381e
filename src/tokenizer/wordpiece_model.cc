// WordPiece (BERT): clean text is cut into words at white space and punctuation; each word is covered greedily by the
// longest tokens from its start.

#include <unicode/uchar.h>

#include <array>

#include "base/utf8.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/text_index.h"
#include "tokenizer/token_model.h"
#include "tokenizer/unicode_class.h"

namespace pagoda {
namespace {

// Longer words are unknown, as in the reference implementation.
constexpr size_t kMaxWordCharacters = 100;

// Pieces that decoding joins to the word before them.
constexpr std::array<std::string_view, 10> kJoinedPieces = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re", "'"};

void append_lower(uint32_t code_point, std::string& out) {
  append_utf8(static_cast<uint32_t>(u_tolower(static_cast<UChar32>(code_point))), out);
  if (code_point == 0x130) append_utf8(0x307, out);  // the only character whose lower case is two
}

class WordPieceModel final : public TokenModel {
 public:
  explicit WordPieceModel(const TokenizerSpec& spec) : spec_(spec), pieces_(spec.tokens.size()) {
    for (size_t i = 0; i < spec_.tokens.size(); ++i) {
      const TokenEntry& token = spec_.tokens[i];
      if (is_matchable(token.type) && !token.text.empty()) pieces_.insert(token.text, static_cast<int32_t>(i));
    }
  }

  void encode(std::string_view text, bool /*add_prefix*/, std::vector<int32_t>& ids) const override {
    const std::string normalized = normalize(text);
    std::vector<size_t> offsets;  // of the characters of the current word
    const auto flush = [&](size_t end) {
      if (!offsets.empty()) encode_word(normalized, offsets, end, ids);
      offsets.clear();
    };
    for (size_t i = 0; i < normalized.size();) {
      const Utf8Char c = decode_utf8(std::string_view(normalized).substr(i));
      const size_t end = i + c.length;
      if (is_white_space(c.code_point)) {
        flush(i);
      } else if (is_punctuation(c.code_point) || is_cjk_ideograph(c.code_point)) {
        flush(i);
        offsets.push_back(i);
        flush(end);
      } else {
        offsets.push_back(i);
      }
      i = end;
    }
    flush(normalized.size());
  }

  std::string token_bytes(int32_t id) const override {
    const std::string_view text = spec_.tokens[static_cast<size_t>(id)].text;
    if (!spec_.continuation_prefix.empty() && text.starts_with(spec_.continuation_prefix)) {
      return std::string(text.substr(spec_.continuation_prefix.size()));
    }
    if (!spec_.word_prefix.empty() && !text.starts_with(spec_.word_prefix)) return std::string(text);
    const std::string_view word = text.substr(spec_.word_prefix.size());
    for (const std::string_view joined : kJoinedPieces) {
      if (word == joined) return std::string(word);
    }
    return ' ' + std::string(word);
  }
  bool starts_with_dummy_space() const override { return true; }

 private:
  std::string normalize(std::string_view text) const {
    const NormalizerSpec& rules = spec_.normalizer;
    std::string clean;
    clean.reserve(text.size());
    for (size_t i = 0; i < text.size();) {
      const Utf8Char c = decode_utf8(text.substr(i));
      const bool is_space = is_white_space(c.code_point);
      const bool is_dropped = c.code_point == 0 || c.code_point == 0xFFFD || (is_control(c.code_point) && !is_space);
      if (!rules.clean_text || !(is_space || is_dropped)) {
        clean += text.substr(i, c.length);
      } else if (is_space) {
        clean += ' ';
      }
      i += c.length;
    }
    if (rules.strip_accents) clean = decompose(clean);
    if (!rules.strip_accents && !rules.lowercase) return clean;
    std::string out;
    out.reserve(clean.size());
    for (size_t i = 0; i < clean.size();) {
      const Utf8Char c = decode_utf8(std::string_view(clean).substr(i));
      i += c.length;
      if (rules.strip_accents && is_nonspacing_mark(c.code_point)) continue;
      if (rules.lowercase) {
        append_lower(c.code_point, out);
      } else {
        append_utf8(c.code_point, out);
      }
    }
    return out;
  }

  void encode_word(std::string_view text, const std::vector<size_t>& offsets, size_t end,
                   std::vector<int32_t>& ids) const {
    const size_t old_size = ids.size();
    bool is_known = offsets.size() <= kMaxWordCharacters;
    for (size_t first = 0; is_known && first < offsets.size();) {
      const std::string& prefix = first == 0 ? spec_.word_prefix : spec_.continuation_prefix;
      size_t last = offsets.size();
      int32_t id = -1;
      for (; last > first; --last) {
        const size_t stop = last == offsets.size() ? end : offsets[last];
        id = pieces_.find(prefix + std::string(text.substr(offsets[first], stop - offsets[first])));
        if (id >= 0) break;
      }
      is_known = id >= 0;
      if (is_known) ids.push_back(id);
      first = last;
    }
    if (is_known) return;
    ids.resize(old_size);
    if (spec_.unk_id) ids.push_back(*spec_.unk_id);
  }

  const TokenizerSpec& spec_;
  TextIndex pieces_;
};

}  // namespace

Result<std::unique_ptr<TokenModel>> create_wordpiece(const TokenizerSpec& spec) {
  return std::unique_ptr<TokenModel>(std::make_unique<WordPieceModel>(spec));
}

}  // namespace pagoda
