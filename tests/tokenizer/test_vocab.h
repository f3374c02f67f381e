#pragma once
// Small vocabularies made in memory.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "tokenizer/byte_map.h"
#include "tokenizer/tokenizer.h"

namespace pagoda::test {

inline void add_token(TokenizerSpec& spec, std::string text, TokenType type = TokenType::kNormal, float score = 0.0f) {
  TokenEntry token;
  token.text = std::move(text);
  token.type = type;
  token.score = score;
  spec.tokens.push_back(std::move(token));
}

/// The byte alphabet's spelling of `bytes`.
inline std::string spell(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) append_utf8(byte_to_alphabet(static_cast<uint8_t>(c)), text);
  return text;
}

/// 256 byte tokens (id = byte), then every prefix of `words` (2 bytes and more), each merged from the one before it.
inline TokenizerSpec byte_level_spec(const std::vector<std::string>& words = {}, std::string pre_tokenizer = "gpt-2") {
  TokenizerSpec spec;
  spec.pre_tokenizer = std::move(pre_tokenizer);
  for (int byte = 0; byte < 256; ++byte) add_token(spec, spell(std::string(1, static_cast<char>(byte))));
  std::vector<std::string> made;
  for (const std::string& word : words) {
    for (size_t length = 2; length <= word.size(); ++length) {
      const std::string prefix = word.substr(0, length);
      if (std::find(made.begin(), made.end(), prefix) != made.end()) continue;
      made.push_back(prefix);
      add_token(spec, spell(prefix));
      spec.merges.push_back(spell(word.substr(0, length - 1)) + ' ' + spell(word.substr(length - 1, 1)));
    }
  }
  return spec;
}

inline void add_byte_tokens(TokenizerSpec& spec) {
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "<0x%02X>", byte);
    add_token(spec, text, TokenType::kByte);
  }
}

inline TokenizerSpec sentencepiece_spec() {
  TokenizerSpec spec;
  spec.model = TokenizerModel::kSentencePieceBpe;
  spec.normalizer.escape_spaces = true;
  spec.normalizer.add_space_prefix = true;
  spec.normalizer.prefix_every_segment = true;
  spec.byte_fallback = true;
  return spec;
}

inline std::unique_ptr<Tokenizer> make(TokenizerSpec spec) {
  auto tokenizer = Tokenizer::create(std::move(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  return tokenizer.ok() ? std::move(*tokenizer) : nullptr;
}

inline std::vector<std::string> pieces(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::vector<std::string> out;
  for (const TokenId id : ids) out.emplace_back(tokenizer.piece(id));
  return out;
}

}  // namespace pagoda::test
