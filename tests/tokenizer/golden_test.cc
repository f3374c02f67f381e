// Ids equal to those of the libraries that define these vocabularies, for 2,000 texts in more than 20 scripts.
// scripts/make_tokenizer_golden.py makes the files and names the versions.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "formats/gguf/gguf_file.h"
#include "tokenizer/tokenizer.h"

namespace pagoda {
namespace {

const std::string kFolder = PAGODA_TEST_DATA "/tokenizer/golden/";

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> read_texts() {
  const std::string bytes = read_file(kFolder + "texts.bin");
  std::vector<std::string> texts;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = bytes.find('\0', begin);
    texts.push_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  return texts;
}

uint32_t read_leb(const std::string& bytes, size_t& at) {
  uint32_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.at(at++));
    value |= static_cast<uint32_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
}

std::vector<std::vector<TokenId>> read_ids(const std::string& name) {
  const std::string bytes = read_file(kFolder + name + ".ids");
  std::vector<std::vector<TokenId>> rows;
  for (size_t at = 0; at < bytes.size();) {
    std::vector<TokenId> row(read_leb(bytes, at));
    for (TokenId& id : row) id = static_cast<TokenId>(read_leb(bytes, at));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::unique_ptr<Tokenizer> load(const std::string& name, const std::function<void(TokenizerSpec&)>& change) {
  const auto file = GgufFile::open(kFolder + name + ".gguf");
  if (!file.ok()) throw std::runtime_error(file.status().to_string());
  auto spec = tokenizer_spec_from_gguf(*file);
  if (!spec.ok()) throw std::runtime_error(spec.status().to_string());
  change(*spec);
  auto tokenizer = Tokenizer::create(std::move(*spec));
  if (!tokenizer.ok()) throw std::runtime_error(tokenizer.status().to_string());
  return std::move(*tokenizer);
}

void expect_golden(const Tokenizer& tokenizer, const std::string& ids_name, bool parse_special) {
  const std::vector<std::string> texts = read_texts();
  const auto expected = read_ids(ids_name);
  ASSERT_EQ(texts.size(), expected.size());
  ASSERT_GE(texts.size(), 2000u);
  size_t num_wrong = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto ids = tokenizer.encode(texts[i], {.add_special = false, .parse_special = parse_special});
    if (ids == expected[i]) continue;
    if (++num_wrong <= 5) {
      EXPECT_EQ(ids, expected[i]) << ids_name << " text " << i << ": \"" << texts[i] << '"';
    }
  }
  EXPECT_EQ(num_wrong, 0u) << ids_name;
}

class ByteLevelGolden : public testing::TestWithParam<const char*> {};

TEST_P(ByteLevelGolden, IdsEqualHuggingFaceTokenizers) {
  const std::string pre_tokenizer = GetParam();
  const auto tokenizer = load(pre_tokenizer == "falcon" ? "bpe_falcon" : "bpe", [&](TokenizerSpec& spec) {
    spec.pre_tokenizer = pre_tokenizer;
    spec.ignore_merges = pre_tokenizer == "llama-bpe" || pre_tokenizer == "tekken";
    if (pre_tokenizer == "qwen2") spec.normalizer.unicode = NormalizerSpec::Unicode::kNfc;
  });
  expect_golden(*tokenizer, "bpe." + pre_tokenizer, /*parse_special=*/true);
}

INSTANTIATE_TEST_SUITE_P(PreTokenizers, ByteLevelGolden,
                         testing::Values("gpt-2", "smollm", "falcon", "llama-bpe", "qwen2", "qwen35", "gpt-4o", "tekken",
                                         "deepseek-v3", "deepseek-coder"),
                         [](const auto& param_info) {
                           std::string name = param_info.param;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

TEST(SentencePieceGolden, BpeIdsEqualSentencePiece) {
  const auto tokenizer = load("spm_bpe", [](TokenizerSpec& spec) { spec.normalizer.prefix_every_segment = false; });
  EXPECT_TRUE(tokenizer->spec().byte_fallback);
  expect_golden(*tokenizer, "spm_bpe", /*parse_special=*/false);
}

TEST(SentencePieceGolden, UnigramIdsEqualSentencePiece) {
  const auto tokenizer = load("unigram", [](TokenizerSpec&) {});
  EXPECT_FALSE(tokenizer->spec().normalizer.precompiled_charsmap.empty());
  expect_golden(*tokenizer, "unigram", /*parse_special=*/false);
}

TEST(SentencePieceGolden, UnigramWithByteFallbackIdsEqualSentencePiece) {
  expect_golden(*load("unigram_bytes", [](TokenizerSpec&) {}), "unigram_bytes", /*parse_special=*/false);
}

TEST(WordPieceGolden, UncasedIdsEqualHuggingFaceTokenizers) {
  expect_golden(*load("wordpiece_uncased", [](TokenizerSpec&) {}), "wordpiece_uncased", /*parse_special=*/false);
}

TEST(WordPieceGolden, CasedIdsEqualHuggingFaceTokenizers) {
  expect_golden(*load("wordpiece_cased", [](TokenizerSpec&) {}), "wordpiece_cased", /*parse_special=*/false);
}

double seconds_to_encode(const Tokenizer& tokenizer, const std::string& text) {
  double best = 1e9;
  for (int run = 0; run < 3; ++run) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(tokenizer.encode(text, {.add_special = false}).empty());
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

TEST(GoldenCost, OneLetterCostsAtMostFourTimesProse) {
  const std::vector<std::string> texts = read_texts();
  std::string prose;
  for (size_t i = 0; prose.size() < size_t{1} << 20; i = (i + 1) % texts.size()) prose += texts[i] + ' ';
  for (const char* name : {"bpe", "spm_bpe", "unigram", "wordpiece_uncased"}) {
    const auto tokenizer = load(name, [](TokenizerSpec&) {});
    const double of_prose = seconds_to_encode(*tokenizer, prose);
    const double of_letter = seconds_to_encode(*tokenizer, std::string(prose.size(), 'a'));
    RecordProperty(name, std::to_string(of_letter / of_prose));
    std::printf("%s: prose %.3f s, one letter %.3f s\n", name, of_prose, of_letter);
    EXPECT_LT(of_letter, 4 * of_prose) << name;
  }
}

}  // namespace
}  // namespace pagoda
