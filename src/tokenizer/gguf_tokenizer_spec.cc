// TokenizerSpec from the tokenizer.ggml.* metadata of a GGUF file.
// Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md#tokenizer

#include <algorithm>
#include <array>
#include <cctype>
#include <unordered_map>

#include "base/log.h"
#include "formats/gguf/gguf_file.h"
#include "tokenizer/pre_tokenizer_table.h"
#include "tokenizer/tokenizer_spec.h"

namespace pagoda {
namespace {

// Texts that end a turn or a text in the known model families. Converters often forget to list these tokens, or to
// mark them as control tokens.
constexpr std::string_view kEndTexts[] = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
    "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
    "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[",
};
// Texts that mark the parts of a fill-in-the-middle prompt: never plain text of a prompt either.
constexpr std::string_view kFillInTexts[] = {
    "<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>",
    "<|prefix|>", "<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>",
    "<|code_suffix|>", "<|suffix|>", "<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>",
    "▁<MID>", "<|code_middle|>", "<|middle|>", "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]",
    "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>",
};

constexpr size_t kLongestKnownText = 32;  // bytes; bounds the search below

class Reader {
 public:
  explicit Reader(const GgufFile& file) : file_(file) {}

  Result<TokenizerSpec> read() {
    PAGODA_ASSIGN_OR_RETURN(const std::string* model, file_.get_string("tokenizer.ggml.model"));
    if (model == nullptr) {
      return not_found("tokenizer.ggml.model: absent; the file has no tokenizer");
    }
    if (*model == "none" || *model == "no_vocab") {
      return not_found("tokenizer.ggml.model: \"" + *model + "\"; the file has no tokenizer");
    }
    PAGODA_RETURN_IF_ERROR(read_tokens());
    PAGODA_RETURN_IF_ERROR(set_family(*model));
    PAGODA_RETURN_IF_ERROR(read_ids());
    PAGODA_RETURN_IF_ERROR(read_flags());
    mark_known_texts();
    PAGODA_RETURN_IF_ERROR(mark_stripping_tokens());
    PAGODA_RETURN_IF_ERROR(check_tokenizer_spec(spec_));
    return std::move(spec_);
  }

 private:
  Status read_tokens() {
    PAGODA_ASSIGN_OR_RETURN(const GgufArray* tokens, file_.get_array("tokenizer.ggml.tokens"));
    const auto* texts = tokens == nullptr ? nullptr : std::get_if<GgufStringArray>(&tokens->values);
    if (texts == nullptr) return data_loss("tokenizer.ggml.tokens: must be an array of strings");
    spec_.tokens.resize(texts->size());
    for (size_t i = 0; i < texts->size(); ++i) spec_.tokens[i].text = (*texts)[i];
    PAGODA_RETURN_IF_ERROR(read_scores());
    return read_types();
  }

  Status read_scores() {
    PAGODA_ASSIGN_OR_RETURN(const GgufArray* scores, file_.get_array("tokenizer.ggml.scores"));
    if (scores == nullptr) return {};
    if (scores->size() != spec_.tokens.size()) return wrong_length("tokenizer.ggml.scores", scores->size());
    if (const auto* floats = std::get_if<std::vector<float>>(&scores->values)) {
      for (size_t i = 0; i < floats->size(); ++i) spec_.tokens[i].score = (*floats)[i];
    } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&scores->values)) {
      for (size_t i = 0; i < ints->size(); ++i) spec_.tokens[i].score = static_cast<float>((*ints)[i]);
    } else {
      return data_loss("tokenizer.ggml.scores: must be an array of float32");
    }
    return {};
  }

  Status read_types() {
    PAGODA_ASSIGN_OR_RETURN(const GgufArray* types, file_.get_array("tokenizer.ggml.token_type"));
    if (types == nullptr) return {};
    if (types->size() != spec_.tokens.size()) return wrong_length("tokenizer.ggml.token_type", types->size());
    const auto* values = std::get_if<std::vector<int64_t>>(&types->values);
    const auto* unsigned_values = std::get_if<std::vector<uint64_t>>(&types->values);
    if (values == nullptr && unsigned_values == nullptr) {
      return data_loss("tokenizer.ggml.token_type: must be an array of int32");
    }
    for (size_t i = 0; i < spec_.tokens.size(); ++i) {
      const int64_t type = values != nullptr ? (*values)[i] : static_cast<int64_t>((*unsigned_values)[i]);
      if (type < 0 || type > 6) {
        return data_loss("tokenizer.ggml.token_type[" + std::to_string(i) + "]: unknown type " + std::to_string(type));
      }
      // 0 is "undefined": such a token takes no part in encoding.
      spec_.tokens[i].type = type == 0 ? TokenType::kUnused : static_cast<TokenType>(type);
    }
    return {};
  }

  Status wrong_length(std::string_view key, size_t size) const {
    return data_loss(std::string(key) + ": " + std::to_string(size) + " entries for " +
                     std::to_string(spec_.tokens.size()) + " tokens");
  }

  Status read_merges() {
    PAGODA_ASSIGN_OR_RETURN(const GgufArray* merges, file_.get_array("tokenizer.ggml.merges"));
    const auto* texts = merges == nullptr ? nullptr : std::get_if<GgufStringArray>(&merges->values);
    if (texts == nullptr) return data_loss("tokenizer.ggml.merges: must be an array of strings");
    spec_.merges.reserve(texts->size());
    for (size_t i = 0; i < texts->size(); ++i) spec_.merges.emplace_back((*texts)[i]);
    return {};
  }

  Status set_family(const std::string& model) {
    if (model == "gpt2") return set_byte_level_bpe();
    if (model == "gemma4") return set_raw_bpe("gemma4");
    if (model == "llama") {
      set_sentencepiece();
    } else if (model == "t5") {
      return set_unigram();
    } else if (model == "bert") {
      set_wordpiece();
    } else {
      return unimplemented("tokenizer.ggml.model: unknown tokenizer model \"" + model.substr(0, 64) + "\"");
    }
    return {};
  }

  Status set_byte_level_bpe() {
    spec_.model = TokenizerModel::kByteLevelBpe;
    PAGODA_ASSIGN_OR_RETURN(const std::string* pre, file_.get_string("tokenizer.ggml.pre"));
    if (pre == nullptr) {
      log_message(LogLevel::kWarning,
                  "tokenizer.ggml.pre: absent, the oldest rule (\"default\") applies; a file converted with a current "
                  "tool would name the right one");
    }
    spec_.pre_tokenizer = pre == nullptr ? "default" : *pre;
    const PreTokenizerRow* row = find_pre_tokenizer(spec_.pre_tokenizer);
    if (row == nullptr) {
      return unimplemented("tokenizer.ggml.pre: unknown pre-tokenizer \"" + spec_.pre_tokenizer.substr(0, 64) +
                           "\"; a wrong one would silently change the model's input");
    }
    spec_.ignore_merges = row->ignore_merges;
    spec_.add_bos = row->add_bos;
    spec_.add_sep = row->add_sep;
    spec_.normalizer.unicode = row->unicode;
    if (row->raw_characters) return set_raw_bpe(spec_.pre_tokenizer);
    return read_merges();
  }

  Status set_raw_bpe(std::string_view pre_tokenizer) {
    spec_.model = TokenizerModel::kByteLevelBpe;
    spec_.pre_tokenizer = pre_tokenizer;
    spec_.raw_characters = true;
    spec_.byte_fallback = true;
    spec_.normalizer.escape_spaces = true;
    return read_merges();
  }

  void set_sentencepiece() {
    spec_.model = TokenizerModel::kSentencePieceBpe;
    spec_.normalizer.escape_spaces = true;
    spec_.normalizer.add_space_prefix = true;
    spec_.normalizer.prefix_every_segment = true;
    spec_.byte_fallback = has_byte_tokens();
    spec_.add_bos = true;
    spec_.bos_id = 1;
    spec_.eos_id = 2;
    spec_.unk_id = 0;
  }

  Status set_unigram() {
    spec_.model = TokenizerModel::kUnigram;
    spec_.normalizer.escape_spaces = true;
    spec_.normalizer.prefix_every_segment = true;
    spec_.byte_fallback = has_byte_tokens();
    spec_.add_eos = true;
    spec_.eos_id = 1;
    spec_.unk_id = 2;
    PAGODA_ASSIGN_OR_RETURN(const GgufArray* map, file_.get_array("tokenizer.ggml.precompiled_charsmap"));
    if (map == nullptr) return {};
    std::string& blob = spec_.normalizer.precompiled_charsmap;
    blob.reserve(map->size());
    if (const auto* bytes = std::get_if<std::vector<uint64_t>>(&map->values)) {
      for (const uint64_t byte : *bytes) blob.push_back(static_cast<char>(byte));
    } else if (const auto* signed_bytes = std::get_if<std::vector<int64_t>>(&map->values)) {
      for (const int64_t byte : *signed_bytes) blob.push_back(static_cast<char>(byte));
    } else {
      return data_loss("tokenizer.ggml.precompiled_charsmap: must be an array of bytes");
    }
    return {};
  }

  void set_wordpiece() {
    spec_.model = TokenizerModel::kWordPiece;
    spec_.normalizer.clean_text = true;
    spec_.normalizer.lowercase = true;
    spec_.normalizer.strip_accents = true;
    const bool marks_words = std::any_of(spec_.tokens.begin(), spec_.tokens.end(),
                                         [](const TokenEntry& token) { return token.text.starts_with("▁"); });
    (marks_words ? spec_.word_prefix : spec_.continuation_prefix) = marks_words ? "▁" : "##";
    spec_.add_bos = true;
    spec_.add_sep = true;
    spec_.bos_id = 101;
    spec_.unk_id = 100;
    spec_.sep_id = 102;
  }

  bool has_byte_tokens() const {
    return std::any_of(spec_.tokens.begin(), spec_.tokens.end(),
                       [](const TokenEntry& token) { return token.type == TokenType::kByte; });
  }

  // An id that the file names must be in the vocabulary; a family's default only counts where it is.
  Status read_id(std::string_view key, std::optional<int32_t>& id) {
    if (id && static_cast<size_t>(*id) >= spec_.tokens.size()) id.reset();
    PAGODA_ASSIGN_OR_RETURN(const std::optional<uint64_t> value, file_.get_uint(key));
    if (!value) return {};
    if (*value >= spec_.tokens.size()) {
      return data_loss(std::string(key) + ": id " + std::to_string(*value) + " is outside the vocabulary of " +
                       std::to_string(spec_.tokens.size()) + " tokens");
    }
    id = static_cast<int32_t>(*value);
    return {};
  }

  Status read_ids() {
    PAGODA_RETURN_IF_ERROR(read_id("tokenizer.ggml.bos_token_id", spec_.bos_id));
    PAGODA_RETURN_IF_ERROR(read_id("tokenizer.ggml.eos_token_id", spec_.eos_id));
    PAGODA_RETURN_IF_ERROR(read_id("tokenizer.ggml.unknown_token_id", spec_.unk_id));
    PAGODA_RETURN_IF_ERROR(read_id("tokenizer.ggml.seperator_token_id", spec_.sep_id));
    PAGODA_RETURN_IF_ERROR(read_id("tokenizer.ggml.padding_token_id", spec_.pad_id));
    PAGODA_RETURN_IF_ERROR(read_id("tokenizer.ggml.cls_token_id", spec_.cls_id));
    PAGODA_RETURN_IF_ERROR(read_id("tokenizer.ggml.mask_token_id", spec_.mask_id));
    PAGODA_RETURN_IF_ERROR(read_id("tokenizer.ggml.eot_token_id", spec_.eot_id));
    PAGODA_RETURN_IF_ERROR(read_id("tokenizer.ggml.eom_token_id", spec_.eom_id));
    if (spec_.model == TokenizerModel::kWordPiece && spec_.cls_id) spec_.bos_id = spec_.cls_id;
    return {};
  }

  Status read_flag(std::string_view key, bool& flag) {
    PAGODA_ASSIGN_OR_RETURN(const std::optional<bool> value, file_.get_bool(key));
    if (value) flag = *value;
    return {};
  }

  Status read_flags() {
    NormalizerSpec& normalizer = spec_.normalizer;
    const bool must_add_bos = spec_.raw_characters;  // gemma 4 files say false by mistake
    PAGODA_RETURN_IF_ERROR(read_flag("tokenizer.ggml.add_bos_token", spec_.add_bos));
    PAGODA_RETURN_IF_ERROR(read_flag("tokenizer.ggml.add_eos_token", spec_.add_eos));
    PAGODA_RETURN_IF_ERROR(read_flag("tokenizer.ggml.add_sep_token", spec_.add_sep));
    PAGODA_RETURN_IF_ERROR(read_flag("tokenizer.ggml.remove_extra_whitespaces", normalizer.remove_extra_spaces));
    if (spec_.model == TokenizerModel::kSentencePieceBpe || spec_.model == TokenizerModel::kUnigram) {
      PAGODA_RETURN_IF_ERROR(read_flag("tokenizer.ggml.add_space_prefix", normalizer.add_space_prefix));
    }
    if (spec_.model == TokenizerModel::kWordPiece) {
      PAGODA_RETURN_IF_ERROR(read_flag("tokenizer.ggml.normalizer.lowercase", normalizer.lowercase));
      normalizer.strip_accents = normalizer.lowercase;
      PAGODA_RETURN_IF_ERROR(read_flag("tokenizer.ggml.normalizer.strip_accents", normalizer.strip_accents));
    }
    if (must_add_bos) spec_.add_bos = true;
    return {};
  }

  // A token of type NORMAL that merges can make is plain text, whatever it looks like ("</s>" is HTML to Qwen 2).
  void forget_texts_made_by_merges(std::unordered_map<std::string_view, size_t>& ids) const {
    for (const std::string& merge : spec_.merges) {
      if (merge.size() > kLongestKnownText + 1) continue;
      std::string text = merge;
      if (const size_t space = text.find(' ', 1); space != std::string::npos) text.erase(space, 1);
      const auto it = ids.find(text);
      if (it == ids.end() || it->second >= spec_.tokens.size()) continue;
      if (spec_.tokens[it->second].type == TokenType::kNormal) it->second = spec_.tokens.size();
    }
  }

  void mark_known_texts() {
    std::unordered_map<std::string_view, size_t> ids;
    for (const std::string_view text : kEndTexts) ids.emplace(text, spec_.tokens.size());
    for (const std::string_view text : kFillInTexts) ids.emplace(text, spec_.tokens.size());
    for (size_t id = 0; id < spec_.tokens.size(); ++id) {
      if (const auto it = ids.find(spec_.tokens[id].text); it != ids.end()) it->second = id;
    }
    forget_texts_made_by_merges(ids);
    const auto has = [&](std::string_view text) { return ids.contains(text) && ids.at(text) < spec_.tokens.size(); };
    // Where a family has its own way to end a turn, two of the texts mean something else.
    const bool end_is_inner = has("<|end|>") && ((has("<|return|>") && has("<|call|>")) ||
                                                 (has("<|flush|>") && (has("<|call|>") || has("<|calls|>"))));
    const bool s_is_normal = has("</s>") && has("<|tool_response>");
    for (const std::string_view text : kEndTexts) {
      if (!has(text) || (text == "<|end|>" && end_is_inner) || (text == "</s>" && s_is_normal)) continue;
      spec_.extra_eog_ids.push_back(static_cast<int32_t>(ids.at(text)));
      spec_.tokens[ids.at(text)].type = TokenType::kControl;
    }
    for (const std::string_view text : kFillInTexts) {
      if (has(text)) spec_.tokens[ids.at(text)].type = TokenType::kControl;
    }
  }

  // GGUF has no field for tokens that swallow white space beside them; these families are known to need it.
  Status mark_stripping_tokens() {
    PAGODA_ASSIGN_OR_RETURN(const std::string* name, file_.get_string("general.name"));
    PAGODA_ASSIGN_OR_RETURN(const std::string* architecture, file_.get_string("general.architecture"));
    std::string lower_name = name == nullptr ? std::string() : *name;
    std::transform(lower_name.begin(), lower_name.end(), lower_name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const bool mask_strips = spec_.pre_tokenizer.starts_with("jina-v2-") ||
                             (architecture != nullptr && (*architecture == "nomic-bert-moe" ||
                                                          *architecture == "jina-bert-v3"));
    const bool is_phi3 = lower_name.find("phi-3") != std::string::npos || lower_name.find("phi3") != std::string::npos;
    for (TokenEntry& token : spec_.tokens) {
      if (mask_strips && token.text == "<mask>") token.strip_left = true;
      if (!is_phi3) continue;
      const bool is_special = token.type == TokenType::kControl || token.type == TokenType::kUserDefined ||
                              token.type == TokenType::kUnknown;
      token.strip_right = is_special && token.text != "<unk>" && token.text != "<s>" && token.text != "<|endoftext|>";
    }
    return {};
  }

  const GgufFile& file_;
  TokenizerSpec spec_;
};

}  // namespace

Result<TokenizerSpec> tokenizer_spec_from_gguf(const GgufFile& file) { return Reader(file).read(); }

}  // namespace pagoda
