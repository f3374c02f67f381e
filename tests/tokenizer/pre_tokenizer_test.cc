#include "tokenizer/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <string>

namespace pagoda {
namespace {

std::vector<std::string> words(std::string_view name, const std::string& text) {
  const auto pre_tokenizer = PreTokenizer::create(name);
  EXPECT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.status().to_string();
  std::vector<size_t> ends;
  (*pre_tokenizer)->split(text, ends);
  std::vector<std::string> out;
  size_t begin = 0;
  for (const size_t end : ends) {
    out.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return out;
}
using Words = std::vector<std::string>;

TEST(PreTokenizer, B03FalconSplitsPunctuationThenWordsThenDigits) {
  EXPECT_EQ(words("falcon", "ab12345!!cd"), (Words{"ab", "123", "45", "!!", "cd"}));
}

TEST(PreTokenizer, B03LlamaOffsets) {
  EXPECT_EQ(words("llama-bpe", "are you ok?"), (Words{"are", " you", " ok", "?"}));
}

TEST(PreTokenizer, B03UnknownNameIsAnError) {
  for (const char* name : {"", "gpt2", "no-such-rule"}) {
    const auto result = PreTokenizer::create(name);
    ASSERT_FALSE(result.ok()) << name;
    EXPECT_EQ(result.status().code(), StatusCode::kUnimplemented);
    EXPECT_NE(result.status().message().find(std::string("\"") + name + "\""), std::string_view::npos);
  }
}

TEST(PreTokenizer, DigitsByFamily) {
  EXPECT_EQ(words("gpt-2", "x 12345"), (Words{"x", " 12345"}));
  EXPECT_EQ(words("smollm", "x 123"), (Words{"x", " ", "1", "2", "3"}));
  EXPECT_EQ(words("qwen2", "x 123"), (Words{"x", " ", "1", "2", "3"}));
  EXPECT_EQ(words("llama-bpe", "x 12345"), (Words{"x", " ", "123", "45"}));
  EXPECT_EQ(words("deepseek-llm", "x 12345"), (Words{"x", " ", "12345"}));
}

TEST(PreTokenizer, WhiteSpaceIsUnicodeWhiteSpace) {
  EXPECT_EQ(words("gpt-2", "a\u3000\u3000b"), (Words{"a", "\u3000", "\u3000", "b"}));
  EXPECT_EQ(words("gpt-2", "a\u180e"), (Words{"a", "\u180e"}));
  EXPECT_EQ(words("deepseek-llm", "中  "), (Words{"中", "  "}));
}

TEST(PreTokenizer, EveryRowCoversTheWholeTextInOrder) {
  const std::string text = "Hello,  wörld!\n\n 12345 中文 ½\t'll x\u00a0 👍🏽\r\n  ";
  for (const PreTokenizerRow& row : all_pre_tokenizers()) {
    std::string joined;
    for (const std::string& word : words(row.name, text)) {
      EXPECT_FALSE(word.empty()) << row.name;
      joined += word;
    }
    EXPECT_EQ(joined, text) << row.name;
    EXPECT_TRUE(words(row.name, "").empty());
  }
}

}  // namespace
}  // namespace pagoda
