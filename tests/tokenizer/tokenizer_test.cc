// Special tokens, BOS, prefixes: what belongs to no single algorithm.

#include "tokenizer/tokenizer.h"

#include <limits>

#include "test_vocab.h"

namespace pagoda {
namespace {

using test::add_token;
using test::make;
using test::pieces;
using Pieces = std::vector<std::string>;

constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};
constexpr EncodeOptions kParse{.add_special = false, .parse_special = true};

TokenizerSpec chat_spec() {
  TokenizerSpec spec = test::byte_level_spec({"hello"});
  add_token(spec, "<s>", TokenType::kControl);
  add_token(spec, "<|end|>", TokenType::kControl);
  add_token(spec, "<tool>", TokenType::kUserDefined);
  add_token(spec, "<unk>", TokenType::kUnknown);
  const auto size = static_cast<int32_t>(spec.tokens.size());
  spec.bos_id = size - 4;
  spec.eos_id = size - 3;
  spec.add_bos = true;
  return spec;
}

TokenizerSpec b01_spec() {
  TokenizerSpec spec = test::sentencepiece_spec();
  add_token(spec, "<s>", TokenType::kControl);
  add_token(spec, "▁a", TokenType::kNormal, -9);
  add_token(spec, "▁b", TokenType::kNormal, -10);
  add_token(spec, "▁", TokenType::kNormal, -11);
  add_token(spec, "a", TokenType::kNormal, -12);
  add_token(spec, "b", TokenType::kNormal, -12);
  add_token(spec, "▁▁", TokenType::kNormal, -1e9f);
  test::add_byte_tokens(spec);
  return spec;
}

TEST(Tokenizer, B01PrefixBeforeEachSegment) {
  const auto tokenizer = make(b01_spec());
  EXPECT_EQ(pieces(*tokenizer, tokenizer->encode("a<s> b", kParse)), (Pieces{"▁a", "<s>", "▁", "▁b"}));
}

TEST(Tokenizer, B01PrefixBeforeTheFirstSegmentOnly) {
  TokenizerSpec spec = b01_spec();
  spec.normalizer.prefix_every_segment = false;
  const auto tokenizer = make(std::move(spec));
  EXPECT_EQ(pieces(*tokenizer, tokenizer->encode("a<s> b", kParse)), (Pieces{"▁a", "<s>", "▁b"}));
  EXPECT_EQ(pieces(*tokenizer, tokenizer->encode("<s>b", kParse)), (Pieces{"<s>", "b"}));
}

TEST(Tokenizer, RawPromptGetsBosAndItsSpecialTextsStayText) {
  const auto tokenizer = make(chat_spec());
  const Pieces got = pieces(*tokenizer, tokenizer->encode("hello<s>", EncodeOptions{}));
  EXPECT_EQ(got, (Pieces{"<s>", "hello", "<", "s", ">"}));
}

TEST(Tokenizer, UserDefinedTokensAreMatchedInPlainText) {
  const auto tokenizer = make(chat_spec());
  EXPECT_EQ(pieces(*tokenizer, tokenizer->encode("hello<tool><unk>", kPlain)),
            (Pieces{"hello", "<tool>", "<", "u", "n", "k", ">"}));
}

TEST(Tokenizer, EmptyText) {
  const auto tokenizer = make(chat_spec());
  EXPECT_TRUE(tokenizer->encode("", kPlain).empty());
  EXPECT_EQ(pieces(*tokenizer, tokenizer->encode("", EncodeOptions{})), (Pieces{"<s>"}));
}

TEST(Tokenizer, B07RenderedBosIsNotDoubled) {
  const auto tokenizer = make(chat_spec());
  const TextSegment segments[] = {{"<s>", true}, {"hello", false}, {"<|end|>", true}};
  EXPECT_EQ(pieces(*tokenizer, tokenizer->encode_segments(segments, EncodeOptions{})),
            (Pieces{"<s>", "hello", "<|end|>"}));
}

TEST(Tokenizer, B07NoBosWhereTheFileWantsNone) {
  TokenizerSpec spec = chat_spec();
  spec.add_bos = false;
  const auto tokenizer = make(std::move(spec));
  const TextSegment segments[] = {{"<|end|>", true}, {"hello", false}};
  EXPECT_EQ(pieces(*tokenizer, tokenizer->encode_segments(segments, EncodeOptions{})), (Pieces{"<|end|>", "hello"}));
}

TEST(Tokenizer, B07BosTextInContentStaysText) {
  const auto tokenizer = make(chat_spec());
  const TextSegment segments[] = {{"<s>", false}, {"<|end|>", true}};
  EXPECT_EQ(pieces(*tokenizer, tokenizer->encode_segments(segments, EncodeOptions{})),
            (Pieces{"<s>", "<", "s", ">", "<|end|>"}));
}

TEST(Tokenizer, ContentNeverBecomesControlTokens) {
  const auto tokenizer = make(chat_spec());
  std::string content;
  for (const TokenEntry& token : tokenizer->spec().tokens) content += token.text;
  // Half of a control text from content, the other half from the template.
  const TextSegment segments[] = {{content, false}, {"|end|>", true}, {"<|end", false}, {"|>", true}, {"<|e", true},
                                  {"nd|>", false}};
  for (const TokenId id : tokenizer->encode_segments(segments, {.add_special = false, .parse_special = true})) {
    EXPECT_NE(tokenizer->spec().tokens[static_cast<size_t>(id)].type, TokenType::kControl);
  }
}

TEST(Tokenizer, MergesNeverMakeControlTokens) {
  TokenizerSpec spec = test::byte_level_spec({"stop"});
  spec.tokens.back().type = TokenType::kControl;
  const auto tokenizer = make(std::move(spec));
  EXPECT_EQ(pieces(*tokenizer, tokenizer->encode("stop", kPlain)), (Pieces{"sto", "p"}));
}

TEST(Tokenizer, NeighbouringTrustedSegmentsAreOneText) {
  const auto tokenizer = make(chat_spec());
  const TextSegment segments[] = {{"<|e", true}, {"nd|>", true}};
  EXPECT_EQ(pieces(*tokenizer, tokenizer->encode_segments(segments, {.add_special = false})), (Pieces{"<|end|>"}));
}

TEST(Tokenizer, WordsRunAcrossSegments) {
  const auto tokenizer = make(chat_spec());
  const TextSegment segments[] = {{"hel", true}, {"lo", false}};
  EXPECT_EQ(pieces(*tokenizer, tokenizer->encode_segments(segments, {.add_special = false})), (Pieces{"hello"}));
}

TEST(Tokenizer, TheLongestSpecialTokenWins) {
  TokenizerSpec spec = test::byte_level_spec();
  for (const char* text : {"<a", "<a>", "<a><b>", "a><b"}) add_token(spec, text, TokenType::kControl);
  const auto tokenizer = make(std::move(spec));
  EXPECT_EQ(pieces(*tokenizer, tokenizer->encode("<a><b><a>x<ab", kParse)),
            (Pieces{"<a><b>", "<a>", "x", "<a", "b"}));
}

TEST(Tokenizer, AddedTokensSwallowWhiteSpaceBesideThem) {
  TokenizerSpec spec = test::byte_level_spec();
  add_token(spec, "<r>", TokenType::kControl);
  spec.tokens.back().strip_right = true;
  add_token(spec, "<l>", TokenType::kControl);
  spec.tokens.back().strip_left = true;
  const auto tokenizer = make(std::move(spec));
  EXPECT_EQ(pieces(*tokenizer, tokenizer->encode("x <r> \u00a0\ny \u3000<l> z", kParse)),
            (Pieces{"x", "Ġ", "<r>", "y", "<l>", "Ġ", "z"}));
}

TEST(Tokenizer, BrokenUtf8IsRepairedSegmentBySegment) {
  const auto tokenizer = make(test::byte_level_spec());
  const TextSegment segments[] = {{"\xC3", false}, {"\xA9", false}};
  EXPECT_EQ(tokenizer->encode_segments(segments, {.add_special = false}), tokenizer->encode("\uFFFD\uFFFD", kPlain));
}

TEST(Tokenizer, B42IdsOutsideTheVocabularyGiveNothing) {
  const auto tokenizer = make(chat_spec());
  for (const TokenId id : {-1, tokenizer->vocab_size(), std::numeric_limits<TokenId>::max(),
                           std::numeric_limits<TokenId>::min(), 999999999}) {
    EXPECT_EQ(tokenizer->token_bytes(id, true), "");
    EXPECT_EQ(tokenizer->piece(id), "");
    EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{'h', id, 'i'}, true), "hi");
  }
}

TEST(Tokenizer, ControlTokensShowOnlyWhenAsked) {
  const auto tokenizer = make(chat_spec());
  const std::vector<TokenId> ids = tokenizer->encode("<s>hello<tool>", kParse);
  EXPECT_EQ(tokenizer->decode(ids, false), "hello<tool>");
  EXPECT_EQ(tokenizer->decode(ids, true), "<s>hello<tool>");
}

TEST(Tokenizer, EndOfGenerationIdsAreSortedAndSingle) {
  TokenizerSpec spec = chat_spec();
  spec.eot_id = 7;
  spec.extra_eog_ids = {*spec.eos_id, 9, 7};
  const TokenId eos = *spec.eos_id;
  const auto tokenizer = make(std::move(spec));
  const auto ids = tokenizer->end_of_generation_ids();
  EXPECT_EQ(std::vector<TokenId>(ids.begin(), ids.end()), (std::vector<TokenId>{7, 9, eos}));
}

}  // namespace
}  // namespace pagoda
