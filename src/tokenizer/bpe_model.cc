// BPE from a list of merges: byte-level (every byte is a character of the vocabulary's alphabet) or over raw
// characters with byte tokens for the rest (gemma4).

#include <array>

#include "base/utf8.h"
#include "tokenizer/byte_map.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pair_merger.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/text_index.h"
#include "tokenizer/token_model.h"

namespace pagoda {
namespace {

class BpeModel final : public TokenModel {
 public:
  BpeModel(const TokenizerSpec& spec, std::unique_ptr<PreTokenizer> pre_tokenizer)
      : spec_(spec),
        pre_tokenizer_(std::move(pre_tokenizer)),
        words_(spec.tokens.size()),
        merges_(spec.merges.size()) {}

  Status init() {
    byte_ids_.fill(-1);
    word_bytes_.reserve(spec_.tokens.size());
    for (size_t id = 0; id < spec_.tokens.size(); ++id) add_token(static_cast<int32_t>(id));
    for (size_t rank = 0; rank < spec_.merges.size(); ++rank) PAGODA_RETURN_IF_ERROR(add_merge(rank));
    for (size_t byte = 0; byte < 256; ++byte) {
      if (byte_ids_[byte] < 0 && spec_.unk_id) byte_ids_[byte] = *spec_.unk_id;
    }
    return {};
  }

  void encode(std::string_view text, bool /*add_prefix*/, std::vector<int32_t>& ids) const override {
    const std::string normalized = normalize_text(spec_.normalizer, text);
    std::vector<size_t> ends;
    pre_tokenizer_->split(normalized, ends);
    PairMerger merger;
    size_t begin = 0;
    for (const size_t end : ends) {
      encode_word(std::string_view(normalized).substr(begin, end - begin), merger, ids);
      begin = end;
    }
  }

  std::string token_bytes(int32_t id) const override { return word_bytes_[static_cast<size_t>(id)]; }
  bool starts_with_dummy_space() const override { return false; }

 private:
  void add_token(int32_t id) {
    const TokenEntry& token = spec_.tokens[static_cast<size_t>(id)];
    std::string bytes;
    const bool is_raw = spec_.raw_characters || !append_alphabet_bytes(token.text, bytes);
    if (spec_.raw_characters) {
      bytes = unescape_spaces(token.text);
    } else if (is_raw) {
      bytes = token.text;  // a character outside the alphabet: an added token, spelt as it is
    }
    word_bytes_.push_back(std::move(bytes));
    if (spec_.raw_characters && token.type == TokenType::kByte) {
      if (const int byte = byte_token_value(token.text); byte >= 0) byte_ids_[static_cast<size_t>(byte)] = id;
    }
    if (token.text.empty()) return;
    if (spec_.raw_characters) {
      words_.insert(token.text, id);
    } else if (!is_raw) {
      const std::string& word = word_bytes_.back();
      words_.insert(word, id);
      if (word.size() == 1 && is_matchable(token.type)) byte_ids_[static_cast<uint8_t>(word[0])] = id;
    }
  }

  // "left right": the first space after the first character separates them.
  Status add_merge(size_t rank) {
    const std::string_view merge = spec_.merges[rank];
    const auto where = [&] { return "tokenizer.ggml.merges[" + std::to_string(rank) + "]: "; };
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos) return data_loss(where() + "no space between its two parts");
    const int32_t left = find_merge_part(merge.substr(0, space));
    const int32_t right = find_merge_part(merge.substr(space + 1));
    if (left < 0 || right < 0) return data_loss(where() + "one of its parts is no token");
    const int32_t merged = find_merge_part(std::string(merge.substr(0, space)).append(merge.substr(space + 1)));
    if (merged < 0) return data_loss(where() + "the merged text is no token");
    if (!is_text(left) || !is_text(right) || !is_text(merged)) return {};  // text never becomes a control token
    merges_.insert(left, right, {static_cast<uint32_t>(rank), merged});
    return {};
  }

  bool is_text(int32_t id) const { return id >= 0 && is_matchable(spec_.tokens[static_cast<size_t>(id)].type); }

  int32_t find_merge_part(std::string_view part) const {
    if (part.empty()) return -1;
    if (spec_.raw_characters) return words_.find(part);
    std::string bytes;
    return append_alphabet_bytes(part, bytes) ? words_.find(bytes) : -1;
  }

  void encode_word(std::string_view word, PairMerger& merger, std::vector<int32_t>& ids) const {
    const bool whole_first = spec_.ignore_merges || (spec_.raw_characters && word[0] == '\n');
    if (whole_first && word.size() <= kMaxMatchBytes) {
      if (const int32_t id = words_.find(word); is_text(id)) {
        ids.push_back(id);
        return;
      }
    }
    merger.symbols().clear();
    add_symbols(word, merger);
    merger.run([&](const MergeSymbol& left, const MergeSymbol& right, uint32_t& rank, int32_t& id) {
      const Merge* merge = merges_.find(left.id, right.id);
      if (merge == nullptr) return false;
      rank = merge->rank;
      id = merge->merged_id;
      return true;
    });
    for (const MergeSymbol& symbol : merger.symbols()) {
      if (symbol.length == 0) continue;
      if (symbol.id >= 0) {
        ids.push_back(symbol.id);
        continue;
      }
      for (const char c : word.substr(symbol.begin, symbol.length)) {
        if (const int32_t id = byte_ids_[static_cast<uint8_t>(c)]; id >= 0) ids.push_back(id);
      }
    }
  }

  void add_symbols(std::string_view word, PairMerger& merger) const {
    for (uint32_t i = 0; i < word.size();) {
      if (!spec_.raw_characters) {
        merger.add_symbol(i, 1, byte_ids_[static_cast<uint8_t>(word[i])]);
        ++i;
        continue;
      }
      const uint32_t length = decode_utf8(word.substr(i)).length;
      const int32_t id = words_.find(word.substr(i, length));
      merger.add_symbol(i, length, is_text(id) ? id : -1);
      i += length;
    }
  }

  const TokenizerSpec& spec_;
  const std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::vector<std::string> word_bytes_;  // what each token adds to the text
  TextIndex words_;
  MergeIndex merges_;
  std::array<int32_t, 256> byte_ids_{};
};

}  // namespace

Result<std::unique_ptr<TokenModel>> create_byte_level_bpe(const TokenizerSpec& spec) {
  PAGODA_ASSIGN_OR_RETURN(auto pre_tokenizer, PreTokenizer::create(spec.pre_tokenizer));
  auto model = std::make_unique<BpeModel>(spec, std::move(pre_tokenizer));
  PAGODA_RETURN_IF_ERROR(model->init());
  return std::unique_ptr<TokenModel>(std::move(model));
}

}  // namespace pagoda
