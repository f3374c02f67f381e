// Properties of encoding over random input, and its cost on the worst of it.

#include <chrono>
#include <random>
#include <set>

#include "test_vocab.h"
#include "tokenizer/pre_tokenizer_table.h"
#include "tokenizer/tokenizer.h"

namespace pagoda {
namespace {

using test::add_token;
using test::make;

constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false};

std::string random_bytes(std::mt19937& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random() % 256);
  return bytes;
}

TEST(EncodeProperty, ByteLevelRoundTripUnderEveryPreTokenizer) {
  std::mt19937 random(1);
  for (const PreTokenizerRow& row : all_pre_tokenizers()) {
    if (row.raw_characters) continue;
    const auto tokenizer = make(test::byte_level_spec({"hello", "aaaaaaaa"}, std::string(row.name)));
    for (int round = 0; round < 60; ++round) {
      const std::string bytes = random_bytes(random, random() % 64);
      const std::string text = repair_utf8(bytes);
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(bytes, kPlain), false), text) << row.name;
    }
  }
}

TEST(EncodeProperty, SentencePieceRoundTripThroughByteFallback) {
  TokenizerSpec spec = test::sentencepiece_spec();
  add_token(spec, "▁");
  add_token(spec, "ab", TokenType::kNormal, -1);
  test::add_byte_tokens(spec);
  const auto tokenizer = make(std::move(spec));
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    const std::string text = repair_utf8("ab" + random_bytes(random, random() % 40));
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, kPlain), false), text);
  }
}

double seconds_to_encode(const Tokenizer& tokenizer, const std::string& text) {
  double best = 1e9;
  for (int run = 0; run < 2; ++run) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_LE(tokenizer.encode(text, kPlain).size(), text.size() + 1);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// 8 times the text costs about 8 times the time; quadratic would be 64 times. The constant forgives a busy machine.
void expect_no_quadratic_path(const Tokenizer& tokenizer, const std::string& unit, const std::string& tail,
                              std::string_view what) {
  const auto repeat = [&](size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += unit;
    return text + tail;
  };
  const double small = seconds_to_encode(tokenizer, repeat(size_t{1} << 13));
  const double large = seconds_to_encode(tokenizer, repeat(size_t{1} << 16));
  EXPECT_LT(large, 32 * small + 0.03) << what << " \"" << unit << "\" + \"" << tail << '"';
}

TEST(EncodeCost, NoQuadraticPathInAnyPreTokenizer) {
  std::set<const void*> rules;
  for (const PreTokenizerRow& row : all_pre_tokenizers()) {
    if (row.raw_characters || !rules.insert(row.steps).second) continue;
    const auto tokenizer = make(test::byte_level_spec({"aaaaaaaa", "        "}, std::string(row.name)));
    for (const char* unit : {"a", "A", " ", "\n", "1", "!", "中", "a ", " \n", "\u0301", "'"}) {
      expect_no_quadratic_path(*tokenizer, unit, "", row.name);
      expect_no_quadratic_path(*tokenizer, unit, "中", row.name);
      expect_no_quadratic_path(*tokenizer, unit, "x", row.name);
    }
  }
}

TEST(EncodeCost, NoQuadraticPathInSpecialTokens) {
  TokenizerSpec spec = test::byte_level_spec();
  add_token(spec, std::string(1 << 16, 'a') + 'b', TokenType::kUserDefined);
  for (size_t length = 2; length < 200; ++length) add_token(spec, std::string(length, 'a') + 'c', TokenType::kUserDefined);
  expect_no_quadratic_path(*make(std::move(spec)), "a", "", "special tokens");
}

TEST(EncodeCost, NoQuadraticPathInTheOtherModels) {
  const auto add_runs = [](TokenizerSpec& spec) {
    add_token(spec, "<unk>", TokenType::kUnknown);
    for (size_t length = 1; length <= 64; ++length) {
      add_token(spec, std::string(length, 'a'), TokenType::kNormal, -static_cast<float>(length % 7));
    }
    add_token(spec, "▁");
    add_token(spec, std::string(1 << 20, 'a'));
    spec.unk_id = 0;
  };
  TokenizerSpec spec = test::sentencepiece_spec();
  spec.byte_fallback = false;
  add_runs(spec);
  for (const TokenizerModel model : {TokenizerModel::kSentencePieceBpe, TokenizerModel::kUnigram}) {
    spec.model = model;
    const auto tokenizer = make(spec);
    for (const char* unit : {"a", "z", " ", "a "}) expect_no_quadratic_path(*tokenizer, unit, "", "sentencepiece");
  }
  spec.model = TokenizerModel::kWordPiece;
  const auto tokenizer = make(spec);
  for (const char* unit : {"a", "z", " ", "a ", "aaaaaaaaaaaaaaaaz"}) {
    expect_no_quadratic_path(*tokenizer, unit, "", "wordpiece");
  }
}

}  // namespace
}  // namespace pagoda
