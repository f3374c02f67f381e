#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <set>

#include "base/utf8.h"
#include "tokenizer/special_token_matcher.h"
#include "tokenizer/token_model.h"
#include "tokenizer/unicode_class.h"

namespace pagoda {
namespace {

Result<std::unique_ptr<TokenModel>> create_model(const TokenizerSpec& spec) {
  switch (spec.model) {
    case TokenizerModel::kByteLevelBpe: return create_byte_level_bpe(spec);
    case TokenizerModel::kSentencePieceBpe: return create_sentencepiece_bpe(spec);
    case TokenizerModel::kUnigram: return create_unigram(spec);
    case TokenizerModel::kWordPiece: return create_wordpiece(spec);
  }
  return unimplemented("tokenizer model");
}

bool is_hidden(TokenType type) { return type == TokenType::kControl || type == TokenType::kUnknown; }

}  // namespace

// A stretch of the input: a special token, or text between special tokens.
struct Tokenizer::Fragment {
  size_t begin = 0;
  size_t end = 0;
  TokenId token = -1;
};

Tokenizer::Tokenizer(TokenizerSpec spec) : spec_(std::move(spec)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(TokenizerSpec spec) {
  PAGODA_RETURN_IF_ERROR(check_tokenizer_spec(spec));
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(spec)));
  PAGODA_ASSIGN_OR_RETURN(tokenizer->model_, create_model(tokenizer->spec_));
  tokenizer->build_matchers();
  tokenizer->find_end_of_generation_ids();
  return tokenizer;
}

void Tokenizer::build_matchers() {
  trusted_matcher_ = std::make_unique<SpecialTokenMatcher>();
  untrusted_matcher_ = std::make_unique<SpecialTokenMatcher>();
  for (TokenId id = 0; id < vocab_size(); ++id) {
    const TokenEntry& token = spec_.tokens[static_cast<size_t>(id)];
    if (!is_valid_utf8(token.text)) continue;  // could cut a character of the text in two
    if (token.type == TokenType::kUserDefined) untrusted_matcher_->add(token.text, id);
    if (token.type == TokenType::kUserDefined || is_hidden(token.type)) trusted_matcher_->add(token.text, id);
  }
  trusted_matcher_->build();
  untrusted_matcher_->build();
}

void Tokenizer::find_end_of_generation_ids() {
  std::set<TokenId> ids(spec_.extra_eog_ids.begin(), spec_.extra_eog_ids.end());
  for (const auto& id : {spec_.eos_id, spec_.eot_id, spec_.eom_id}) {
    if (id) ids.insert(*id);
  }
  eog_ids_.assign(ids.begin(), ids.end());
}

// `trusted_runs` holds begin, end, begin, end, ... of the stretches whose CONTROL texts count.
std::vector<Tokenizer::Fragment> Tokenizer::split_special(std::string_view text,
                                                          std::span<const size_t> trusted_runs) const {
  using Match = SpecialTokenMatcher::Match;
  std::vector<Match> matches;
  std::vector<Match> found;
  untrusted_matcher_->find_all(text, found);
  matches.insert(matches.end(), found.begin(), found.end());
  for (size_t i = 0; i + 1 < trusted_runs.size(); i += 2) {
    trusted_matcher_->find_all(text.substr(trusted_runs[i], trusted_runs[i + 1] - trusted_runs[i]), found);
    for (Match& match : found) match.begin += trusted_runs[i];
    matches.insert(matches.end(), found.begin(), found.end());
  }
  std::sort(matches.begin(), matches.end(), [](const Match& a, const Match& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.length > b.length;
  });

  std::vector<Fragment> fragments;
  size_t position = 0;
  for (const Match& match : matches) {
    if (match.begin < position) continue;
    const TokenEntry& token = spec_.tokens[static_cast<size_t>(match.token)];
    size_t text_end = match.begin;
    if (token.strip_left) text_end = position + trailing_white_space(text.substr(position, text_end - position));
    if (text_end > position) fragments.push_back({position, text_end, -1});
    position = match.begin + match.length;
    fragments.push_back({match.begin, position, match.token});
    if (token.strip_right) position += leading_white_space(text.substr(position));
  }
  if (position < text.size()) fragments.push_back({position, text.size(), -1});
  return fragments;
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  const TextSegment segment{std::string(text), options.parse_special};
  return encode_segments({&segment, 1}, options);
}

std::vector<TokenId> Tokenizer::encode_segments(std::span<const TextSegment> segments,
                                                const EncodeOptions& options) const {
  // Words run across segments, so the text is one; only special tokens mind where a segment ends.
  std::string text;
  std::vector<size_t> trusted_runs;
  for (const TextSegment& segment : segments) {
    const size_t begin = text.size();
    text += is_valid_utf8(segment.text) ? segment.text : repair_utf8(segment.text);
    if (!segment.is_trusted || text.size() == begin) continue;
    if (!trusted_runs.empty() && trusted_runs.back() == begin) {
      trusted_runs.back() = text.size();
    } else {
      trusted_runs.insert(trusted_runs.end(), {begin, text.size()});
    }
  }
  const std::vector<Fragment> fragments = split_special(text, trusted_runs);

  std::vector<TokenId> ids;
  const bool has_bos = !fragments.empty() && fragments[0].token >= 0 && fragments[0].token == spec_.bos_id;
  if (options.add_special && spec_.add_bos && spec_.bos_id && !has_bos) ids.push_back(*spec_.bos_id);
  for (const Fragment& fragment : fragments) {
    if (fragment.token >= 0) {
      ids.push_back(fragment.token);
      continue;
    }
    const bool add_prefix =
        spec_.normalizer.add_space_prefix && (fragment.begin == 0 || spec_.normalizer.prefix_every_segment);
    model_->encode(std::string_view(text).substr(fragment.begin, fragment.end - fragment.begin), add_prefix, ids);
  }
  if (!options.add_special) return ids;
  if (spec_.add_eos && spec_.eos_id) ids.push_back(*spec_.eos_id);
  if (spec_.model == TokenizerModel::kWordPiece && spec_.add_sep && spec_.sep_id) ids.push_back(*spec_.sep_id);
  return ids;
}

std::string Tokenizer::token_bytes(TokenId id, bool show_special) const {
  if (id < 0 || id >= vocab_size()) return {};
  const TokenEntry& token = spec_.tokens[static_cast<size_t>(id)];
  if (is_hidden(token.type)) return show_special ? token.text : std::string();
  if (token.type == TokenType::kUserDefined) return token.text;
  if (token.type == TokenType::kByte) {
    if (const int byte = byte_token_value(token.text); byte >= 0) return std::string(1, static_cast<char>(byte));
  }
  return model_->token_bytes(id);
}

std::string_view Tokenizer::piece(TokenId id) const {
  if (id < 0 || id >= vocab_size()) return {};
  return spec_.tokens[static_cast<size_t>(id)].text;
}

bool Tokenizer::drops_leading_space() const { return model_->starts_with_dummy_space(); }

std::string Tokenizer::decode(std::span<const TokenId> ids, bool show_special) const {
  std::string bytes;
  for (const TokenId id : ids) bytes += token_bytes(id, show_special);
  if (drops_leading_space() && bytes.starts_with(' ')) bytes.erase(0, 1);
  return is_valid_utf8(bytes) ? bytes : repair_utf8(bytes);
}

Detokenizer::Detokenizer(const Tokenizer& tokenizer, const Options& options)
    : tokenizer_(tokenizer), options_(options) {}

std::string Detokenizer::push(TokenId id) {
  std::string bytes = tokenizer_.token_bytes(id, options_.show_special);
  if (bytes.empty()) return {};
  if (at_start_ && options_.strip_leading_space && tokenizer_.drops_leading_space() && bytes[0] == ' ') {
    bytes.erase(0, 1);
  }
  at_start_ = false;
  pending_ += bytes;
  const size_t complete = complete_utf8_prefix(pending_);
  std::string text = repair_utf8(std::string_view(pending_).substr(0, complete));
  pending_.erase(0, complete);
  return text;
}

std::string Detokenizer::finish() {
  std::string text = repair_utf8(pending_);
  pending_.clear();
  return text;
}

int byte_token_value(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const int high = digit(text[3]);
  const int low = digit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

}  // namespace pagoda
