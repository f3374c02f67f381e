// Ids for the texts that llama.cpp keeps beside its vocabulary files. Needs a checkout of llama.cpp's source, named by
// the environment variable PAGODA_LLAMA_CPP; without it the tests say that they are skipped.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "formats/gguf/gguf_file.h"
#include "tokenizer/tokenizer.h"

namespace pagoda {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) break;
    begin = end + separator.size();
  }
  return parts;
}

class LlamaCppVocab : public testing::TestWithParam<const char*> {};

TEST_P(LlamaCppVocab, IdsMatch) {
  const char* root = std::getenv("PAGODA_LLAMA_CPP");
  if (root == nullptr) GTEST_SKIP() << "PAGODA_LLAMA_CPP does not name a llama.cpp source folder: NOT TESTED";
  const std::string path = std::string(root) + "/models/ggml-vocab-" + GetParam() + ".gguf";
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  auto spec = tokenizer_spec_from_gguf(*file);
  ASSERT_TRUE(spec.ok()) << spec.status().to_string();
  const auto tokenizer = Tokenizer::create(std::move(*spec));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();

  const std::vector<std::string> texts = split(read_file(path + ".inp"), "\n__ggml_vocab_test__\n");
  const std::vector<std::string> lines = split(read_file(path + ".out"), "\n");
  ASSERT_EQ(texts.size(), lines.size());
  ASSERT_GT(texts.size(), 40u);
  for (size_t i = 0; i < texts.size(); ++i) {
    std::istringstream line(lines[i]);
    const std::vector<TokenId> expected((std::istream_iterator<TokenId>(line)), {});
    EXPECT_EQ((*tokenizer)->encode(texts[i], {.add_special = false, .parse_special = false}), expected)
        << GetParam() << " text " << i << ": \"" << texts[i] << '"';
  }
}

INSTANTIATE_TEST_SUITE_P(Files, LlamaCppVocab,
                         testing::Values("bert-bge", "command-r", "deepseek-coder", "deepseek-llm", "falcon", "gemma-4",
                                         "gpt-2", "llama-bpe", "llama-spm", "mpt", "phi-3", "qwen2", "qwen35",
                                         "refact", "starcoder"),
                         [](const auto& param_info) {
                           std::string name = param_info.param;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace pagoda
