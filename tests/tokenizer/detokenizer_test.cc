#include <random>

#include "test_vocab.h"
#include "tokenizer/tokenizer.h"

namespace pagoda {
namespace {

using test::add_token;
using test::make;

std::string stream(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, Detokenizer::Options options = {}) {
  Detokenizer detokenizer(tokenizer, options);
  std::string text;
  for (const TokenId id : ids) {
    const std::string delta = detokenizer.push(id);
    EXPECT_TRUE(is_valid_utf8(delta));
    text += delta;
  }
  const std::string rest = detokenizer.finish();
  EXPECT_TRUE(is_valid_utf8(rest));
  return text + rest;
}

TEST(Detokenizer, B27BrokenSequenceIsOneReplacement) {
  const auto tokenizer = make(test::byte_level_spec());
  const std::vector<TokenId> ids = {0xF0, 0x9F, 0x27, 'o', 'k'};
  EXPECT_EQ(stream(*tokenizer, ids), "\uFFFD'ok");
  EXPECT_EQ(tokenizer->decode(ids, false), "\uFFFD'ok");
}

TEST(Detokenizer, B28NothingUntilTheCharacterIsWhole) {
  const auto tokenizer = make(test::byte_level_spec());
  Detokenizer detokenizer(*tokenizer, {});
  EXPECT_EQ(detokenizer.push(0xF0), "");
  EXPECT_EQ(detokenizer.push(0x9F), "");
  EXPECT_EQ(detokenizer.push(0xA6), "");
  EXPECT_EQ(detokenizer.push(0x99), "🦙");
  EXPECT_EQ(detokenizer.push(0xC3), "");
  EXPECT_EQ(detokenizer.push(0xA9), "é");
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, B28UnfinishedEndIsOneReplacement) {
  const auto tokenizer = make(test::byte_level_spec());
  EXPECT_EQ(stream(*tokenizer, {'a', 0xF0, 0x9F, 0xA6}), "a\uFFFD");
}

TEST(Detokenizer, B30TokenBytesAreTheTrueBytes) {
  TokenizerSpec spec = test::byte_level_spec();
  const auto first = static_cast<TokenId>(spec.tokens.size());
  add_token(spec, test::spell("\xF0\x9F"));
  add_token(spec, test::spell("\xA6\x99"));
  const auto tokenizer = make(std::move(spec));
  EXPECT_EQ(tokenizer->token_bytes(first, false), "\xF0\x9F");
  EXPECT_EQ(tokenizer->token_bytes(first + 1, false), "\xA6\x99");
  EXPECT_EQ(stream(*tokenizer, {first, first + 1}), "🦙");
}

TEST(Detokenizer, B28AnyValidTextAnyByteSplit) {
  std::mt19937 random(28);
  const std::vector<std::string> characters = {"a", " ", "é", "ß", "中", "क", "\uFFFD", "🦙", "\U0010FFFF", "\n", "\u0000"};
  TokenizerSpec spec = test::byte_level_spec();
  std::vector<std::string> texts;
  std::vector<std::vector<TokenId>> splits;
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (size_t i = random() % 12; i > 0; --i) text += characters[random() % characters.size()];
    std::vector<TokenId> ids;
    for (size_t begin = 0; begin < text.size();) {
      const size_t length = std::min<size_t>(1 + random() % 5, text.size() - begin);
      const std::string spelling = test::spell(text.substr(begin, length));
      const auto same = std::find_if(spec.tokens.begin(), spec.tokens.end(),
                                     [&](const TokenEntry& token) { return token.text == spelling; });
      ids.push_back(static_cast<TokenId>(same - spec.tokens.begin()));
      if (same == spec.tokens.end()) add_token(spec, spelling);
      begin += length;
    }
    texts.push_back(text);
    splits.push_back(ids);
  }
  const auto tokenizer = make(std::move(spec));
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(stream(*tokenizer, splits[i]), texts[i]);
    EXPECT_EQ(tokenizer->decode(splits[i], false), texts[i]);
  }
}

TEST(Detokenizer, B27RandomByteTokensGiveValidTextEqualToDecode) {
  const auto tokenizer = make(test::byte_level_spec());
  std::mt19937 random(27);
  for (int round = 0; round < 10000; ++round) {
    std::vector<TokenId> ids(random() % 12);
    for (TokenId& id : ids) id = static_cast<TokenId>(random() % 256);
    EXPECT_EQ(stream(*tokenizer, ids), tokenizer->decode(ids, false));
  }
}

TEST(Detokenizer, SentencePieceDropsTheDummySpaceOnlyAtTheStartOfAText) {
  TokenizerSpec spec = test::sentencepiece_spec();
  add_token(spec, "<s>", TokenType::kControl);
  add_token(spec, "▁a");
  add_token(spec, "▁");
  test::add_byte_tokens(spec);
  const auto tokenizer = make(std::move(spec));
  const std::vector<TokenId> ids = {0, 1, 1, 2, 3 + 0xC3, 3 + 0xA9};
  EXPECT_EQ(tokenizer->decode(ids, false), "a a é");
  EXPECT_EQ(tokenizer->decode(ids, true), "<s> a a é");
  EXPECT_EQ(stream(*tokenizer, ids, {.strip_leading_space = true}), "a a é");
  EXPECT_EQ(stream(*tokenizer, ids), " a a é");
}

TEST(Detokenizer, WordPieceJoinsPieces) {
  TokenizerSpec spec;
  spec.model = TokenizerModel::kWordPiece;
  spec.continuation_prefix = "##";
  for (const char* text : {"play", "##ing", ".", "do"}) add_token(spec, text);
  const auto tokenizer = make(std::move(spec));
  EXPECT_EQ(tokenizer->token_bytes(0, false), " play");
  EXPECT_EQ(tokenizer->token_bytes(1, false), "ing");
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{3, 0, 1, 2}, false), "do playing.");
}

}  // namespace
}  // namespace pagoda
