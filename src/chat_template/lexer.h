#pragma once
// Template source into tokens, with jinja2's rules for white space around tags (trim_blocks and lstrip_blocks on, the
// final newline dropped).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda::jinja {

enum class TokenType : uint8_t {
  kData,           ///< text outside tags
  kVariableBegin,  ///< {{
  kVariableEnd,
  kBlockBegin,  ///< {%
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,  ///< text has the operator
  kEof,
};

struct Token {
  TokenType type = TokenType::kEof;
  std::string text;
  int64_t integer = 0;
  double number = 0;
  uint32_t line = 1;
};

/// Throws TemplateFailure with the line for a source that jinja2's lexer refuses.
std::vector<Token> tokenize(std::string_view source);

[[noreturn]] void fail_at(uint32_t line, const std::string& message);

}  // namespace pagoda::jinja
