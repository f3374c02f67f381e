// Hostile and contradictory vocabularies: a load error that names the field, or a tokenizer that works.

#include "tokenizer/tokenizer_spec.h"

#include <limits>

#include "test_vocab.h"
#include "tokenizer/tokenizer.h"

namespace pagoda {
namespace {

using test::add_token;
using test::make;

constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};

void expect_data_loss(TokenizerSpec spec, std::string_view field) {
  const auto result = Tokenizer::create(std::move(spec));
  ASSERT_FALSE(result.ok()) << field;
  EXPECT_EQ(result.status().code(), StatusCode::kDataLoss) << result.status().to_string();
  EXPECT_NE(result.status().message().find(field), std::string_view::npos) << result.status().to_string();
}

TEST(TokenizerSpec, B42EveryIdFieldIsChecked) {
  std::optional<int32_t> TokenizerSpec::*const fields[] = {
      &TokenizerSpec::bos_id, &TokenizerSpec::eos_id, &TokenizerSpec::unk_id, &TokenizerSpec::sep_id,
      &TokenizerSpec::pad_id, &TokenizerSpec::cls_id, &TokenizerSpec::mask_id, &TokenizerSpec::eot_id,
      &TokenizerSpec::eom_id};
  for (const auto field : fields) {
    for (const int32_t id : {-1, 256, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()}) {
      TokenizerSpec spec = test::byte_level_spec();
      spec.*field = id;
      expect_data_loss(std::move(spec), "outside the vocabulary");
    }
  }
  TokenizerSpec spec = test::byte_level_spec();
  spec.extra_eog_ids = {256};
  expect_data_loss(std::move(spec), "outside the vocabulary");
}

TEST(TokenizerSpec, EmptyVocabulary) { expect_data_loss(TokenizerSpec(), "tokenizer.ggml.tokens"); }

TEST(TokenizerSpec, DuplicateTokens) {
  TokenizerSpec spec = test::byte_level_spec();
  add_token(spec, "a");
  expect_data_loss(std::move(spec), "tokens[256]: the same text as tokenizer.ggml.tokens[97]");
}

TEST(TokenizerSpec, ScoresMustBeNumbers) {
  TokenizerSpec spec = test::sentencepiece_spec();
  add_token(spec, "<unk>", TokenType::kUnknown, std::numeric_limits<float>::quiet_NaN());
  spec.unk_id = 0;
  expect_data_loss(std::move(spec), "scores[0]");
}

TEST(TokenizerSpec, BrokenMerges) {
  const std::pair<const char*, const char*> cases[] = {
      {"ab", "no space"}, {"", "no space"},         {" ", "no space"},          {"a ", "no token"},
      {"a zz", "no token"}, {"zz a", "no token"}, {"a b", "merged text is no token"}, {"a \xFF", "no token"},
  };
  for (const auto& [merge, message] : cases) {
    TokenizerSpec spec = test::byte_level_spec();
    spec.merges = {merge};
    expect_data_loss(std::move(spec), message);
  }
}

TEST(TokenizerSpec, RepeatedMergeKeepsTheFirstRank) {
  TokenizerSpec spec = test::byte_level_spec({"ab", "bc"});
  spec.merges = {"a b", "b c", "a b"};
  const auto tokenizer = make(std::move(spec));
  EXPECT_EQ(test::pieces(*tokenizer, tokenizer->encode("abc", kPlain)), (std::vector<std::string>{"ab", "c"}));
}

TEST(TokenizerSpec, AddBosNeedsABos) {
  TokenizerSpec spec = test::byte_level_spec();
  spec.add_bos = true;
  expect_data_loss(std::move(spec), "add_bos_token");
}

TEST(TokenizerSpec, ByteFallbackNeedsBytesOrUnknown) {
  TokenizerSpec spec = test::sentencepiece_spec();
  add_token(spec, "▁a");
  add_token(spec, "<unk>", TokenType::kUnknown);
  expect_data_loss(spec, "byte 0 has no token");
  spec.unk_id = 1;
  const auto tokenizer = make(std::move(spec));
  EXPECT_EQ(tokenizer->encode("aéé", kPlain), (std::vector<TokenId>{0, 1}));
}

TEST(TokenizerSpec, EmptyAndHugeTokensAreHarmless) {
  const std::string huge(1 << 20, 'a');
  for (const TokenizerModel model : {TokenizerModel::kByteLevelBpe, TokenizerModel::kSentencePieceBpe,
                                     TokenizerModel::kUnigram, TokenizerModel::kWordPiece}) {
    for (const TokenType type : {TokenType::kNormal, TokenType::kControl, TokenType::kUserDefined, TokenType::kUnused,
                                 TokenType::kByte, TokenType::kUnknown}) {
      TokenizerSpec spec = test::byte_level_spec();
      spec.model = model;
      spec.unk_id = 0;
      add_token(spec, "", type);
      add_token(spec, "", type);
      add_token(spec, huge, type);
      const auto tokenizer = make(std::move(spec));
      EXPECT_EQ(tokenizer->piece(258), huge);
      for (const TokenId id : tokenizer->encode("xaaa ", {.add_special = true, .parse_special = true})) {
        EXPECT_TRUE(id >= 0 && id < 256);
      }
      EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{256, 257}, true).size() <= 2, true);
    }
  }
}

TEST(TokenizerSpec, TokensThatAreNotUtf8AreHarmless) {
  TokenizerSpec spec = test::byte_level_spec();
  add_token(spec, "\xA9", TokenType::kUserDefined);
  add_token(spec, "\xC3", TokenType::kControl);
  add_token(spec, "\xF0\x9F", TokenType::kNormal);
  const auto tokenizer = make(std::move(spec));
  EXPECT_EQ(tokenizer->encode("é", {.add_special = false, .parse_special = true}),
            (std::vector<TokenId>{0xC3, 0xA9}));
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{258, 256}, true), "\uFFFD");  // an unfinished character
}

TEST(TokenizerSpec, BrokenCharsmaps) {
  using namespace std::string_literals;
  for (const std::string& blob : {"\1"s, "\xFF\xFF\xFF\xFF"s, "\3\0\0\0abc"s, "\4\0\0\0\0\0\0\0x"s}) {
    TokenizerSpec spec = test::sentencepiece_spec();
    spec.model = TokenizerModel::kUnigram;
    add_token(spec, "<unk>", TokenType::kUnknown);
    spec.unk_id = 0;
    spec.normalizer.precompiled_charsmap = blob;
    expect_data_loss(std::move(spec), "precompiled_charsmap");
  }
}

}  // namespace
}  // namespace pagoda
