#include "tokenizer/pre_tokenizer_table.h"

#include <algorithm>

namespace pagoda {
namespace {

using Steps = std::array<PreTokenizerStep, kMaxPreTokenizerSteps>;
using Kind = PreTokenizerStep::Kind;

constexpr PreTokenizerStep regex(std::string_view pattern) { return {Kind::kRegex, pattern}; }

// The alternatives are tried in order; the first that matches wins, so their order is part of the rule.
#define PAGODA_GPT2 R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"
#define PAGODA_CONTRACTIONS R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define PAGODA_WHITE_SPACE R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"
// The family that began with cl100k: contractions, letters with one leading symbol, digits, symbols, white space.
#define PAGODA_CL100K(digits) \
  PAGODA_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|)" digits R"(| ?[^\s\p{L}\p{N}]+[\r\n]*)" PAGODA_WHITE_SPACE
// The family that began with o200k: a word breaks where lower case is followed by upper case.
#define PAGODA_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define PAGODA_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define PAGODA_O200K(suffix, digits)                                                                        \
  R"([^\r\n\p{L}\p{N}]?)" PAGODA_UPPER "*" PAGODA_LOWER "+" suffix R"(|[^\r\n\p{L}\p{N}]?)" PAGODA_UPPER "+" \
  PAGODA_LOWER "*" suffix "|" digits R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*)" PAGODA_WHITE_SPACE

// Letters that have case, as the DeepSeek tokenizers list them.
#define PAGODA_CASED_LETTERS                                                                                  \
  "[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛ" \
  "ὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ" \
  "-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]"

constexpr Steps kGpt2 = {regex(PAGODA_GPT2)};
constexpr Steps kDigitsThenGpt2 = {regex(R"(\p{N})"), regex(PAGODA_GPT2)};
constexpr Steps kFalcon = {regex(R"([\p{P}$+<=>\^~|`]+)"), regex(PAGODA_GPT2), regex("[0-9]+"),
                           regex("[0-9][0-9][0-9]")};
constexpr Steps kDefault = {regex(R"([\p{P}$+<=>\^~|]+)"), regex(PAGODA_GPT2), regex(R"(\p{N}+)"),
                            regex("[0-9][0-9][0-9]")};
constexpr Steps kLlama3 = {regex(PAGODA_CL100K(R"(\p{N}{1,3})"))};
constexpr Steps kQwen2 = {regex(PAGODA_CL100K(R"(\p{N})"))};
constexpr Steps kQwen35 = {regex(PAGODA_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
                                 PAGODA_WHITE_SPACE)};
constexpr Steps kMiniCpm5 = {regex(R"(\p{N}{1,3})"), regex(PAGODA_CL100K(R"(\p{N}+)"))};
constexpr Steps kBailing = {regex(R"('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
                                  R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)")};
constexpr Steps kSeedCoder = {regex(PAGODA_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+)"
                                    PAGODA_WHITE_SPACE)};
constexpr Steps kTekken = {regex(PAGODA_O200K("", R"(\p{N})"))};
constexpr Steps kGpt4o = {regex(PAGODA_O200K("(?:" PAGODA_CONTRACTIONS ")?", R"(\p{N}{1,3})"))};
constexpr Steps kDeepSeekLlm = {regex(R"([\r\n])"),
                                regex(R"(\s?)" PAGODA_CASED_LETTERS "+"),
                                regex(R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)"),
                                {Kind::kTrailingWhiteSpace, {}},
                                regex(R"([一-龥\x{800}-一가-\x{D7FF}]+)"),
                                regex(R"(\p{N}+)")};
constexpr Steps kDeepSeekCoder = {regex(R"([\r\n])"), regex(R"(\s?\p{L}+)"), regex(R"(\s?\p{P}+)"),
                                  regex(R"([一-龥\x{800}-一가-\x{D7FF}]+)"), regex(R"(\p{N})")};
constexpr Steps kDeepSeek3 = {
    regex(R"(\p{N}{1,3})"), regex(R"([一-龥぀-ゟ゠-ヿ]+)"),
    regex(R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)"
          PAGODA_WHITE_SPACE)};
// SentencePiece-style merges over whole lines of raw text.
constexpr Steps kLines = {regex(R"([^\n]+|\n+)")};

#undef PAGODA_GPT2
#undef PAGODA_CONTRACTIONS
#undef PAGODA_WHITE_SPACE
#undef PAGODA_CL100K
#undef PAGODA_UPPER
#undef PAGODA_LOWER
#undef PAGODA_O200K
#undef PAGODA_CASED_LETTERS

constexpr auto kNfc = NormalizerSpec::Unicode::kNfc;

constexpr PreTokenizerRow kRows[] = {
    {.name = "default", .steps = &kDefault},
    {.name = "gpt-2", .steps = &kGpt2},
    {.name = "phi-2", .steps = &kGpt2},
    {.name = "mpt", .steps = &kGpt2, .unicode = kNfc},
    {.name = "olmo", .steps = &kGpt2, .unicode = kNfc},
    {.name = "jais", .steps = &kGpt2},
    {.name = "exaone4", .steps = &kGpt2},
    {.name = "trillion", .steps = &kGpt2},
    {.name = "granite-docling", .steps = &kGpt2},
    {.name = "gigachat", .steps = &kGpt2},
    {.name = "mellum", .steps = &kGpt2},
    {.name = "a.x-4.0", .steps = &kGpt2},
    {.name = "modern-bert", .steps = &kGpt2},
    {.name = "jina-es", .steps = &kGpt2},
    {.name = "jina-de", .steps = &kGpt2},
    {.name = "jina-v2-es", .steps = &kGpt2},
    {.name = "jina-v2-de", .steps = &kGpt2},
    {.name = "jina-v1-en", .steps = &kGpt2, .add_sep = true},
    {.name = "jina-v2-code", .steps = &kGpt2, .add_sep = true},
    {.name = "roberta-bpe", .steps = &kGpt2, .add_sep = true},
    {.name = "smollm", .steps = &kDigitsThenGpt2},
    {.name = "starcoder", .steps = &kDigitsThenGpt2},
    {.name = "refact", .steps = &kDigitsThenGpt2},
    {.name = "command-r", .steps = &kDigitsThenGpt2, .unicode = kNfc},
    {.name = "codeshell", .steps = &kDigitsThenGpt2},
    {.name = "exaone", .steps = &kDigitsThenGpt2},
    {.name = "minerva-7b", .steps = &kDigitsThenGpt2},
    {.name = "mellum2", .steps = &kDigitsThenGpt2},
    {.name = "falcon", .steps = &kFalcon},
    {.name = "llama-bpe", .steps = &kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "llama3", .steps = &kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "llama-v3", .steps = &kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "falcon3", .steps = &kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "falcon-h1", .steps = &kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "pixtral", .steps = &kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "midm-2.0", .steps = &kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "lfm2", .steps = &kLlama3, .ignore_merges = true, .add_bos = true},
    {.name = "dbrx", .steps = &kLlama3},
    {.name = "smaug-bpe", .steps = &kLlama3},
    {.name = "chatglm-bpe", .steps = &kLlama3},
    {.name = "glm4", .steps = &kLlama3, .ignore_merges = true},
    {.name = "glm5", .steps = &kLlama3, .ignore_merges = true},
    {.name = "qwen2", .steps = &kQwen2, .unicode = kNfc},
    {.name = "deepseek-r1-qwen", .steps = &kQwen2, .unicode = kNfc},
    {.name = "kormo", .steps = &kQwen2},
    {.name = "megrez", .steps = &kQwen2},
    {.name = "stablelm2", .steps = &kQwen2},
    {.name = "hunyuan", .steps = &kQwen2},
    {.name = "solar-open", .steps = &kQwen2},
    {.name = "grok-2", .steps = &kQwen2},
    {.name = "qwen35", .steps = &kQwen35},
    {.name = "minicpm5", .steps = &kMiniCpm5, .ignore_merges = true},
    {.name = "bailingmoe", .steps = &kBailing},
    {.name = "bailingmoe2", .steps = &kBailing},
    {.name = "llada-moe", .steps = &kBailing},
    {.name = "seed-coder", .steps = &kSeedCoder},
    {.name = "tekken", .steps = &kTekken, .ignore_merges = true, .add_bos = true},
    {.name = "gpt-4o", .steps = &kGpt4o},
    {.name = "llama4", .steps = &kGpt4o},
    {.name = "kanana2", .steps = &kGpt4o},
    {.name = "minimax-m2", .steps = &kGpt4o},
    {.name = "deepseek-llm", .steps = &kDeepSeekLlm},
    {.name = "deepseek-coder", .steps = &kDeepSeekCoder},
    {.name = "deepseek-v3", .steps = &kDeepSeek3},
    {.name = "hunyuan-dense", .steps = &kDeepSeek3},
    {.name = "joyai-llm", .steps = &kDeepSeek3},
    {.name = "gemma4", .steps = &kLines, .add_bos = true, .raw_characters = true},
};

}  // namespace

const PreTokenizerRow* find_pre_tokenizer(std::string_view name) {
  const auto it = std::find_if(std::begin(kRows), std::end(kRows), [&](const auto& row) { return row.name == name; });
  return it == std::end(kRows) ? nullptr : it;
}

std::span<const PreTokenizerRow> all_pre_tokenizers() { return kRows; }

}  // namespace pagoda
