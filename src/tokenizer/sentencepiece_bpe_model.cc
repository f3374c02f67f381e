// SentencePiece BPE: the whole text is one word of characters, and the pair whose joined text has the best score of
// all tokens joins next.

#include <algorithm>
#include <array>
#include <bit>

#include "base/utf8.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pair_merger.h"
#include "tokenizer/text_index.h"
#include "tokenizer/token_model.h"

namespace pagoda {
namespace {

// Ascending ranks for falling scores.
uint32_t rank_of_score(float score) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 becomes 0
  const uint32_t rising = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return ~rising;
}

class SentencePieceBpeModel final : public TokenModel {
 public:
  explicit SentencePieceBpeModel(const TokenizerSpec& spec) : spec_(spec), pieces_(spec.tokens.size()) {}

  Status init() {
    byte_ids_.fill(-1);
    for (size_t i = 0; i < spec_.tokens.size(); ++i) {
      const TokenEntry& token = spec_.tokens[i];
      const auto id = static_cast<int32_t>(i);
      if (token.type == TokenType::kByte) {
        if (const int byte = byte_token_value(token.text); byte >= 0) byte_ids_[static_cast<size_t>(byte)] = id;
      }
      if (!is_matchable(token.type) || token.text.empty() || token.text.size() > kMaxMatchBytes) continue;
      pieces_.insert(token.text, id);
      max_piece_bytes_ = std::max(max_piece_bytes_, token.text.size());
    }
    for (size_t byte = 0; byte < 256 && spec_.byte_fallback; ++byte) {
      if (byte_ids_[byte] < 0 && !spec_.unk_id) {
        return data_loss("tokenizer.ggml.tokens: byte " + std::to_string(byte) +
                         " has no token, and there is no unknown token to stand in for it");
      }
    }
    return {};
  }

  void encode(std::string_view text, bool add_prefix, std::vector<int32_t>& ids) const override {
    std::string prefixed(text);
    if (spec_.normalizer.remove_extra_spaces) prefixed = remove_extra_spaces(prefixed);
    if (prefixed.empty()) return;
    if (add_prefix) prefixed.insert(0, 1, ' ');
    const std::string normalized = normalize_text(spec_.normalizer, prefixed);
    // Offsets inside a part are 32 bits.
    constexpr size_t kPartBytes = size_t{1} << 30;
    std::string_view rest = normalized;
    while (rest.size() > kPartBytes) {
      const size_t cut = complete_utf8_prefix(rest.substr(0, kPartBytes));
      encode_part(rest.substr(0, cut), ids);
      rest.remove_prefix(cut);
    }
    encode_part(rest, ids);
  }

  std::string token_bytes(int32_t id) const override {
    return unescape_spaces(spec_.tokens[static_cast<size_t>(id)].text);
  }
  bool starts_with_dummy_space() const override { return spec_.normalizer.add_space_prefix; }

 private:
  void encode_part(std::string_view text, std::vector<int32_t>& ids) const {
    PairMerger merger;
    merger.symbols().reserve(text.size());
    for (uint32_t i = 0; i < text.size();) {
      const uint32_t length = decode_utf8(text.substr(i)).length;
      merger.add_symbol(i, length, pieces_.find(text.substr(i, length)));
      i += length;
    }
    merger.run([&](const MergeSymbol& left, const MergeSymbol& right, uint32_t& rank, int32_t& id) {
      const size_t length = left.length + right.length;
      if (length > max_piece_bytes_) return false;
      id = pieces_.find(text.substr(left.begin, length));
      if (id < 0) return false;
      rank = rank_of_score(spec_.tokens[static_cast<size_t>(id)].score);
      return true;
    });
    bool after_unknown = false;
    for (const MergeSymbol& symbol : merger.symbols()) {
      if (symbol.length == 0) continue;
      if (symbol.id >= 0) {
        ids.push_back(symbol.id);
        after_unknown = false;
      } else {
        emit_unknown(text.substr(symbol.begin, symbol.length), after_unknown, ids);
      }
    }
  }

  // A character without a token: its bytes, or the unknown token, once for a run of such characters.
  void emit_unknown(std::string_view character, bool& after_unknown, std::vector<int32_t>& ids) const {
    const bool has_bytes =
        spec_.byte_fallback && std::all_of(character.begin(), character.end(),
                                           [&](char c) { return byte_ids_[static_cast<uint8_t>(c)] >= 0; });
    if (has_bytes) {
      for (const char c : character) ids.push_back(byte_ids_[static_cast<uint8_t>(c)]);
      after_unknown = false;
      return;
    }
    if (spec_.unk_id && !after_unknown) ids.push_back(*spec_.unk_id);
    after_unknown = true;
  }

  const TokenizerSpec& spec_;
  TextIndex pieces_;
  size_t max_piece_bytes_ = 0;
  std::array<int32_t, 256> byte_ids_{};
};

}  // namespace

Result<std::unique_ptr<TokenModel>> create_sentencepiece_bpe(const TokenizerSpec& spec) {
  auto model = std::make_unique<SentencePieceBpeModel>(spec);
  PAGODA_RETURN_IF_ERROR(model->init());
  return std::unique_ptr<TokenModel>(std::move(model));
}

}  // namespace pagoda
