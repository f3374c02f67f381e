#include "chat_template/lexer.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/utf8.h"
#include "chat_template/budget.h"
#include "chat_template/text.h"
#include "chat_template/unicode.h"

namespace pagoda::jinja {
namespace {

std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Digits that may be separated by single underscores; returns the end.
template <typename Accept>
size_t scan_digits(std::string_view s, size_t at, Accept accept) {
  while (at < s.size()) {
    if (accept(s[at])) {
      ++at;
    } else if (s[at] == '_' && at + 1 < s.size() && accept(s[at + 1])) {
      at += 2;
    } else {
      break;
    }
  }
  return at;
}

std::string without_underscores(std::string_view s) {
  std::string out(s);
  std::erase(out, '_');
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) outside();
    push(TokenType::kEof, "");
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool starts(std::string_view s) const { return rest().starts_with(s); }

  // A token takes about 80 bytes: the list stays below 16 MiB.
  void push(TokenType type, std::string text) {
    if (tokens_.size() >= 200'000) fail_limit("the template has more than 200000 tokens");
    Token token;
    token.type = type;
    token.text = std::move(text);
    token.line = line_;
    tokens_.push_back(std::move(token));
  }
  void advance(size_t bytes) {
    line_ += static_cast<uint32_t>(std::count(source_.begin() + static_cast<ptrdiff_t>(at_),
                                              source_.begin() + static_cast<ptrdiff_t>(at_ + bytes), '\n'));
    line_starting_ = bytes > 0 ? source_[at_ + bytes - 1] == '\n' : line_starting_;
    at_ += bytes;
  }
  size_t skip_space(size_t from) const {
    while (from < source_.size()) {
      const Utf8Char c = decode_utf8(std::string_view(source_).substr(from));
      if (!is_python_space(c.code_point)) break;
      from += c.length;
    }
    return from;
  }

  // Data before a tag, with the tag's sign and the lstrip rule applied.
  void push_data(size_t begin, size_t end, char sign, bool is_variable) {
    std::string_view text = std::string_view(source_).substr(begin, end - begin);
    if (sign == '-') {
      text = text.substr(0, strip_range(text, {.left = false, .right = true}).second);
    } else if (sign != '+' && !is_variable) {
      const size_t newline = text.rfind('\n');
      const size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
      if (line_begin > 0 || line_starting_) {
        const std::string_view tail = text.substr(line_begin);
        if (strip_range(tail, {.left = true, .right = false}).first == tail.size()) text = text.substr(0, line_begin);
      }
    }
    if (!text.empty()) push(TokenType::kData, std::string(text));
  }

  void outside() {
    size_t brace = at_;
    while (true) {
      brace = source_.find('{', brace);
      if (brace == std::string::npos || brace + 1 >= source_.size()) {
        push(TokenType::kData, source_.substr(at_));
        advance(source_.size() - at_);
        return;
      }
      const char next = source_[brace + 1];
      if (next == '{' || next == '%' || next == '#') break;
      ++brace;
    }
    const char kind = source_[brace + 1];
    size_t after = brace + 2;
    const char sign = after < source_.size() && (source_[after] == '-' || source_[after] == '+') ? source_[after] : ' ';
    if (sign != ' ') ++after;
    push_data(at_, brace, sign, kind == '{');
    advance(after - at_);
    if (kind == '#') {
      comment();
    } else if (kind == '%' && raw_block()) {
      return;
    } else {
      push(kind == '{' ? TokenType::kVariableBegin : TokenType::kBlockBegin, "");
      inside(kind == '{');
    }
  }

  // Consumes what follows a closing `%}` or `#}` that ends at `end`: trim_blocks takes one newline.
  void close(size_t end, char sign) {
    if (sign == '-') end = skip_space(end);
    else if (sign != '+' && end < source_.size() && source_[end] == '\n') ++end;
    advance(end - at_);
  }

  void comment() {
    const uint32_t line = line_;
    const size_t end = source_.find("#}", at_);
    if (end == std::string::npos) fail_at(line, "Missing end of comment tag");
    const char sign = end > at_ ? source_[end - 1] : ' ';
    close(end + 2, sign);
  }

  // `raw` and its body when the tag just opened is one.
  bool raw_block() {
    size_t at = skip_space(at_);
    if (!std::string_view(source_).substr(at).starts_with("raw")) return false;
    at = skip_space(at + 3);
    const bool strips = std::string_view(source_).substr(at).starts_with("-%}");
    if (!strips && !std::string_view(source_).substr(at).starts_with("%}")) return false;
    const uint32_t line = line_;
    at += strips ? 3 : 2;
    advance((strips ? skip_space(at) : at) - at_);
    for (size_t open = source_.find("{%", at_); open != std::string::npos; open = source_.find("{%", open + 2)) {
      size_t name = open + 2;
      const char sign = name < source_.size() && (source_[name] == '-' || source_[name] == '+') ? source_[name] : ' ';
      if (sign != ' ') ++name;
      name = skip_space(name);
      if (!std::string_view(source_).substr(name).starts_with("endraw")) continue;
      size_t end = skip_space(name + 6);
      char end_sign = ' ';
      if (end < source_.size() && (source_[end] == '-' || source_[end] == '+')) end_sign = source_[end++];
      if (!std::string_view(source_).substr(end).starts_with("%}")) continue;
      push_data(at_, open, sign, false);
      close(end + 2, end_sign);
      return true;
    }
    fail_at(line, "Missing end of raw directive");
  }

  void inside(bool is_variable) {
    while (at_ < source_.size()) {
      advance(skip_space(at_) - at_);
      if (at_ >= source_.size()) return;
      if (brackets_.empty() && try_close(is_variable)) return;
      if (!number() && !name() && !string_literal()) operator_token();
    }
  }

  bool try_close(bool is_variable) {
    const std::string_view mark = is_variable ? "}}" : "%}";
    const char c = source_[at_];
    const bool is_signed = (c == '-' || (c == '+' && !is_variable)) && rest().substr(1).starts_with(mark);
    if (!is_signed && !starts(mark)) return false;
    push(is_variable ? TokenType::kVariableEnd : TokenType::kBlockEnd, "");
    const size_t end = at_ + (is_signed ? 3 : 2);
    if (is_variable) {
      advance((is_signed ? skip_space(end) : end) - at_);
    } else {
      close(end, is_signed ? c : ' ');
    }
    return true;
  }

  bool number() {
    const std::string_view s = source_;
    if (!is_digit(s[at_])) return false;
    if (try_float()) return true;
    int base = 10;
    size_t begin = at_;
    size_t end = at_;
    const char prefix = at_ + 1 < s.size() ? static_cast<char>(s[at_ + 1] | 0x20) : ' ';
    if (s[at_] == '0' && (prefix == 'x' || prefix == 'o' || prefix == 'b')) {
      base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : 2;
      begin = at_ + 2;
      end = scan_digits(s, begin, [base](char c) {
        const int v = is_digit(c) ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : 99;
        return v < base;
      });
    }
    if (end <= begin) {  // decimal; "0" may only be followed by zeros
      base = 10;
      begin = at_;
      end = scan_digits(s, at_, s[at_] == '0' ? [](char c) { return c == '0'; } : [](char c) { return is_digit(c); });
    }
    const std::string digits = without_underscores(s.substr(begin, end - begin));
    push(TokenType::kInteger, digits);
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), tokens_.back().integer, base);
    if (parsed.ec != std::errc()) fail_at(line_, "the integer " + digits + " does not fit 64 bits");
    advance(end - at_);
    return true;
  }

  bool try_float() {
    const std::string_view s = source_;
    if (at_ > 0 && s[at_ - 1] == '.') return false;
    size_t end = scan_digits(s, at_, is_digit);
    bool is_float = false;
    if (end + 1 < s.size() && s[end] == '.' && is_digit(s[end + 1])) {
      end = scan_digits(s, end + 1, is_digit);
      is_float = true;
    }
    if (end < s.size() && (s[end] | 0x20) == 'e') {
      size_t exponent = end + 1;
      if (exponent < s.size() && (s[exponent] == '+' || s[exponent] == '-')) ++exponent;
      if (exponent < s.size() && is_digit(s[exponent])) {
        end = scan_digits(s, exponent, is_digit);
        is_float = true;
      }
    }
    if (!is_float) return false;
    const std::string digits = without_underscores(s.substr(at_, end - at_));
    push(TokenType::kFloat, digits);
    tokens_.back().number = std::strtod(digits.c_str(), nullptr);  // "C" locale; out of range gives inf as Python does
    advance(end - at_);
    return true;
  }

  bool name() {
    size_t end = at_;
    while (end < source_.size()) {
      const Utf8Char c = decode_utf8(std::string_view(source_).substr(end));
      if (c.code_point != '_' && !unicode::is_alnum(c.code_point)) break;
      end += c.length;
    }
    if (end == at_) return false;
    push(TokenType::kName, source_.substr(at_, end - at_));
    advance(end - at_);
    return true;
  }

  bool string_literal() {
    const char quote = source_[at_];
    if (quote != '\'' && quote != '"') return false;
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail_at(line_, std::string("unexpected char '") + quote + "': the text has no end");
    push(TokenType::kString, unescape(std::string_view(source_).substr(at_ + 1, end - at_ - 1)));
    advance(end + 1 - at_);
    return true;
  }

  std::string unescape(std::string_view s) const {
    std::string out;
    for (size_t i = 0; i < s.size(); ++i) {
      if (s[i] != '\\' || i + 1 >= s.size()) {
        out += s[i];
        continue;
      }
      const char c = s[++i];
      constexpr std::string_view kFrom = "\\'\"abfnrtv";
      constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
      if (const size_t known = kFrom.find(c); known != std::string_view::npos) {
        out += kTo[known];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        i += unescape_hex(s.substr(i), c == 'x' ? 2 : c == 'u' ? 4 : 8, out);
      } else if (c >= '0' && c <= '7') {
        uint32_t v = 0;
        size_t n = 0;
        while (n < 3 && i + n < s.size() && s[i + n] >= '0' && s[i + n] <= '7') v = v * 8 + static_cast<uint32_t>(s[i + n++] - '0');
        append_utf8(v, out);
        i += n - 1;
      } else if (c == 'N') {
        fail_at(line_, "named characters (\\N{...}) are not supported");
      } else if (c != '\n') {
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  // `s` starts at the letter after the backslash; returns how many characters after it were used.
  size_t unescape_hex(std::string_view s, size_t digits, std::string& out) const {
    uint32_t v = 0;
    const char* end = s.data() + std::min(s.size(), digits + 1);
    const auto parsed = std::from_chars(s.data() + 1, end, v, 16);
    if (s.size() < digits + 1 || parsed.ptr != end) fail_at(line_, "truncated escape in a text");
    if (v > 0x10FFFF || (v >= 0xD800 && v < 0xE000)) fail_at(line_, "an escape in a text is no Unicode character");
    append_utf8(v, out);
    return digits;
  }

  void operator_token() {
    static constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
    static constexpr std::string_view kOne = "+-/*%~[](){}><=.:|,;";
    std::string op;
    for (const std::string_view two : kTwo) {
      if (starts(two)) op = two;
    }
    if (op.empty() && kOne.find(source_[at_]) != std::string_view::npos) op = source_[at_];
    if (op.empty()) fail_at(line_, "unexpected char " + std::string(rest().substr(0, decode_utf8(rest()).length)));
    balance(op[0]);
    push(TokenType::kOperator, op);
    advance(op.size());
  }

  void balance(char c) {
    if (c == '(') brackets_ += ')';
    else if (c == '[') brackets_ += ']';
    else if (c == '{') brackets_ += '}';
    else if (c == ')' || c == ']' || c == '}') {
      if (brackets_.empty()) fail_at(line_, std::string("unexpected '") + c + "'");
      if (brackets_.back() != c) fail_at(line_, std::string("unexpected '") + c + "', expected '" + brackets_.back() + "'");
      brackets_.pop_back();
    }
  }

  std::string source_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool line_starting_ = true;
  std::string brackets_;
  std::vector<Token> tokens_;
};

}  // namespace

void fail_at(uint32_t line, const std::string& message) { fail("line " + std::to_string(line) + ": " + message); }

std::vector<Token> tokenize(std::string_view source) { return Lexer(normalize_newlines(source)).run(); }

}  // namespace pagoda::jinja
