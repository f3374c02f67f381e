// SentencePiece unigram: the segmentation with the highest sum of scores (Viterbi over a trie of the tokens).

#include <algorithm>
#include <array>
#include <limits>

#include "base/utf8.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/text_index.h"
#include "tokenizer/token_model.h"

namespace pagoda {
namespace {

// What an unknown character costs beyond the worst token, as SentencePiece has it.
constexpr double kUnknownPenalty = 10.0;

class UnigramModel final : public TokenModel {
 public:
  UnigramModel(const TokenizerSpec& spec, Charsmap charsmap, size_t num_nodes)
      : spec_(spec), charsmap_(std::move(charsmap)), edges_(num_nodes), node_tokens_(1, -1) {}

  Status init() {
    if (!spec_.unk_id) return data_loss("tokenizer.ggml.unknown_token_id: a unigram vocabulary needs one");
    byte_ids_.fill(-1);
    double worst = 0.0;
    for (size_t i = 0; i < spec_.tokens.size(); ++i) {
      const TokenEntry& token = spec_.tokens[i];
      const auto id = static_cast<int32_t>(i);
      if (token.type == TokenType::kByte) {
        if (const int byte = byte_token_value(token.text); byte >= 0) byte_ids_[static_cast<size_t>(byte)] = id;
      }
      if (!takes_part(token)) continue;
      worst = std::min(worst, static_cast<double>(token.score));
      add_path(token.text, id);
    }
    unknown_score_ = worst - kUnknownPenalty;
    return {};
  }

  static bool takes_part(const TokenEntry& token) {
    return (token.type == TokenType::kNormal || token.type == TokenType::kUserDefined) && !token.text.empty() &&
           token.text.size() <= kMaxMatchBytes;
  }

  void encode(std::string_view text, bool add_prefix, std::vector<int32_t>& ids) const override {
    std::string normalized = charsmap_.apply(text);
    if (spec_.normalizer.remove_extra_spaces) normalized = remove_extra_spaces(normalized);
    if (normalized.empty()) return;
    if (add_prefix) normalized.insert(0, 1, ' ');
    normalized = normalize_text(spec_.normalizer, normalized);
    const std::vector<Step> steps = find_best_steps(normalized);
    emit(normalized, steps, ids);
  }

  std::string token_bytes(int32_t id) const override {
    return unescape_spaces(spec_.tokens[static_cast<size_t>(id)].text);
  }
  bool starts_with_dummy_space() const override { return spec_.normalizer.add_space_prefix; }

 private:
  // The best way to reach an offset: the last token on it and where that token begins.
  struct Step {
    double score = -std::numeric_limits<double>::infinity();
    size_t begin = 0;
    int32_t token = -1;  // -1: an unknown character
  };

  void add_path(std::string_view text, int32_t id) {
    int32_t node = 0;
    for (const char c : text) {
      const auto byte = static_cast<uint8_t>(c);
      const Merge* edge = edges_.find(node, byte);
      if (edge == nullptr) {
        const auto child = static_cast<int32_t>(node_tokens_.size());
        node_tokens_.push_back(-1);
        edges_.insert(node, byte, {0, child});
        node = child;
      } else {
        node = edge->merged_id;
      }
    }
    node_tokens_[static_cast<size_t>(node)] = id;
  }

  std::vector<Step> find_best_steps(std::string_view text) const {
    std::vector<Step> steps(text.size() + 1);
    steps[0].score = 0.0;
    for (size_t begin = 0; begin < text.size();) {
      const size_t character = decode_utf8(text.substr(begin)).length;
      const double base = steps[begin].score;
      bool has_single = false;
      int32_t node = 0;
      for (size_t end = begin; end < text.size();) {
        const Merge* edge = edges_.find(node, static_cast<uint8_t>(text[end]));
        if (edge == nullptr) break;
        node = edge->merged_id;
        ++end;
        const int32_t token = node_tokens_[static_cast<size_t>(node)];
        if (token < 0) continue;
        has_single = has_single || end - begin == character;
        const TokenEntry& entry = spec_.tokens[static_cast<size_t>(token)];
        const double score = base + (entry.type == TokenType::kUserDefined ? 0.0 : static_cast<double>(entry.score));
        if (score > steps[end].score) steps[end] = {score, begin, token};
      }
      Step& after = steps[begin + character];
      if (!has_single && base + unknown_score_ > after.score) after = {base + unknown_score_, begin, -1};
      begin += character;
    }
    return steps;
  }

  // Unknown characters become their bytes, or the unknown token, once for a run of them.
  void emit(std::string_view text, const std::vector<Step>& steps, std::vector<int32_t>& ids) const {
    std::vector<size_t> ends;
    for (size_t end = text.size(); end > 0; end = steps[end].begin) ends.push_back(end);
    bool after_unknown = false;
    for (size_t i = ends.size(); i-- > 0;) {
      const Step& step = steps[ends[i]];
      if (step.token >= 0) {
        ids.push_back(step.token);
        after_unknown = false;
        continue;
      }
      const std::string_view character = text.substr(step.begin, ends[i] - step.begin);
      const bool has_bytes =
          spec_.byte_fallback && std::all_of(character.begin(), character.end(),
                                             [&](char c) { return byte_ids_[static_cast<uint8_t>(c)] >= 0; });
      if (has_bytes) {
        for (const char c : character) ids.push_back(byte_ids_[static_cast<uint8_t>(c)]);
      } else if (!after_unknown) {
        ids.push_back(*spec_.unk_id);
      }
      after_unknown = !has_bytes;
    }
  }

  const TokenizerSpec& spec_;
  const Charsmap charsmap_;
  MergeIndex edges_;  // (node, byte) -> child node
  std::vector<int32_t> node_tokens_;
  double unknown_score_ = 0.0;
  std::array<int32_t, 256> byte_ids_{};
};

// Nodes of the trie: in sorted order, each text adds what it does not share with the one before.
size_t count_trie_nodes(const TokenizerSpec& spec) {
  std::vector<std::string_view> texts;
  for (const TokenEntry& token : spec.tokens) {
    if (UnigramModel::takes_part(token)) texts.push_back(token.text);
  }
  std::sort(texts.begin(), texts.end());
  size_t count = 1;
  std::string_view previous;
  for (const std::string_view text : texts) {
    const auto mismatch = std::mismatch(previous.begin(), previous.end(), text.begin(), text.end());
    count += static_cast<size_t>(text.end() - mismatch.second);
    previous = text;
  }
  return count;
}

}  // namespace

Result<std::unique_ptr<TokenModel>> create_unigram(const TokenizerSpec& spec) {
  PAGODA_ASSIGN_OR_RETURN(Charsmap charsmap, Charsmap::create(spec.normalizer.precompiled_charsmap));
  const size_t num_nodes = count_trie_nodes(spec);
  if (num_nodes > size_t{64} << 20) return data_loss("tokenizer.ggml.tokens: more than 64 Mi bytes of token texts");
  auto model = std::make_unique<UnigramModel>(spec, std::move(charsmap), num_nodes);
  PAGODA_RETURN_IF_ERROR(model->init());
  return std::unique_ptr<TokenModel>(std::move(model));
}

}  // namespace pagoda
