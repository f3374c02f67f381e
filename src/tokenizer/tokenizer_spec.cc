#include "tokenizer/tokenizer_spec.h"

#include <cmath>

#include "tokenizer/text_index.h"

namespace pagoda {
namespace {

constexpr size_t kMaxTokens = size_t{4} << 20;
constexpr size_t kMaxMerges = size_t{8} << 20;

std::string token_name(size_t id) { return "tokenizer.ggml.tokens[" + std::to_string(id) + "]"; }

Status check_tokens(const TokenizerSpec& spec) {
  if (spec.tokens.empty()) return data_loss("tokenizer.ggml.tokens: the vocabulary is empty");
  if (spec.tokens.size() > kMaxTokens) {
    return data_loss("tokenizer.ggml.tokens: " + std::to_string(spec.tokens.size()) + " tokens, at most " +
                     std::to_string(kMaxTokens) + " are allowed");
  }
  TextIndex seen(spec.tokens.size());
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    const TokenEntry& token = spec.tokens[id];
    if (!std::isfinite(token.score)) {
      return data_loss("tokenizer.ggml.scores[" + std::to_string(id) + "]: not a finite number");
    }
    if (token.text.empty()) continue;  // a gap in the vocabulary: never encoded, decodes to nothing
    if (!seen.insert(token.text, static_cast<int32_t>(id))) {
      return data_loss(token_name(id) + ": the same text as " + token_name(static_cast<size_t>(seen.find(token.text))));
    }
  }
  return {};
}

Status check_id(const TokenizerSpec& spec, std::string_view field, std::optional<int32_t> id) {
  if (!id || (*id >= 0 && static_cast<size_t>(*id) < spec.tokens.size())) return {};
  return data_loss(std::string(field) + ": id " + std::to_string(*id) + " is outside the vocabulary of " +
                   std::to_string(spec.tokens.size()) + " tokens");
}

}  // namespace

Status check_tokenizer_spec(const TokenizerSpec& spec) {
  PAGODA_RETURN_IF_ERROR(check_tokens(spec));
  if (spec.merges.size() > kMaxMerges) {
    return data_loss("tokenizer.ggml.merges: " + std::to_string(spec.merges.size()) + " merges, at most " +
                     std::to_string(kMaxMerges) + " are allowed");
  }
  const std::pair<std::string_view, std::optional<int32_t>> ids[] = {
      {"tokenizer.ggml.bos_token_id", spec.bos_id},     {"tokenizer.ggml.eos_token_id", spec.eos_id},
      {"tokenizer.ggml.unknown_token_id", spec.unk_id}, {"tokenizer.ggml.seperator_token_id", spec.sep_id},
      {"tokenizer.ggml.padding_token_id", spec.pad_id}, {"tokenizer.ggml.cls_token_id", spec.cls_id},
      {"tokenizer.ggml.mask_token_id", spec.mask_id},   {"tokenizer.ggml.eot_token_id", spec.eot_id},
      {"tokenizer.ggml.eom_token_id", spec.eom_id},
  };
  for (const auto& [field, id] : ids) PAGODA_RETURN_IF_ERROR(check_id(spec, field, id));
  for (const int32_t id : spec.extra_eog_ids) PAGODA_RETURN_IF_ERROR(check_id(spec, "end of generation", id));
  if (spec.add_bos && !spec.bos_id) return data_loss("tokenizer.ggml.add_bos_token: set, but there is no BOS token");
  if (spec.add_eos && !spec.eos_id) return data_loss("tokenizer.ggml.add_eos_token: set, but there is no EOS token");
  if (spec.add_sep && spec.model == TokenizerModel::kWordPiece && !spec.sep_id) {
    return data_loss("tokenizer.ggml.add_sep_token: set, but there is no separator token");
  }
  return {};
}

}  // namespace pagoda
