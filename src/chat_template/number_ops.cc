#include "chat_template/number_ops.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

std::string_view stripped(std::string_view text) {
  const auto [begin, end] = strip_range(text, {});
  return text.substr(begin, end - begin);
}

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

// Removes single underscores between digits; false when one stands elsewhere.
bool drop_underscores(std::string_view text, std::string& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const auto is_word = [](char c) { return is_ascii_digit(c) || (c | 0x20) >= 'a'; };
    if (i == 0 || i + 1 >= text.size() || !is_word(text[i - 1]) || !is_word(text[i + 1])) return false;
  }
  return true;
}

// Round half to even at a decimal digit, through the exact decimal text as Python does.
double round_decimal(double value, int64_t precision) {
  if (!std::isfinite(value) || precision > 340) return value;
  if (precision < -310) return std::copysign(0.0, value);
  if (precision >= 0) {
    char buffer[800];
    const auto result = std::to_chars(buffer, buffer + sizeof(buffer) - 1, value, std::chars_format::fixed, static_cast<int>(precision));
    *result.ptr = '\0';
    return std::strtod(buffer, nullptr);
  }
  const double scale = std::pow(10.0, static_cast<double>(-precision));
  return std::nearbyint(value / scale) * scale;
}

}  // namespace

std::optional<int64_t> parse_python_int(std::string_view text, int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) fail("int() base must be >= 2 and <= 36, or 0");
  text = stripped(text);
  bool is_negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    is_negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const char letter = text.size() > 1 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : ' ';
  const int64_t prefix = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  if (prefix != 0 && (base == prefix || base == 0)) {
    text.remove_prefix(2);
    if (!text.empty() && text[0] == '_') text.remove_prefix(1);
    base = prefix;
  }
  if (base == 0) {
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != std::string_view::npos) return std::nullopt;
    base = 10;
  }
  std::string digits = is_negative ? "-" : "";
  if (text.empty() || text[0] == '-' || !drop_underscores(text, digits)) return std::nullopt;
  int64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, static_cast<int>(base));
  if (result.ptr != digits.data() + digits.size()) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range) fail("an integer in a text does not fit 64 bits");
  return result.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<double> parse_python_float(std::string_view text) {
  std::string plain;
  if (!drop_underscores(stripped(text), plain) || plain.empty()) return std::nullopt;
  // strtod would also take hexadecimal and nan(...).
  for (const char c : plain) {
    if (c == '\0' || c == 'x' || c == 'X' || c == '(' || c == 'p' || c == 'P') return std::nullopt;
  }
  char* end = nullptr;
  const double value = std::strtod(plain.c_str(), &end);
  if (end != plain.c_str() + plain.size()) return std::nullopt;
  return value;
}

Value double_to_integer(double d, const Value& fallback) {
  if (!std::isfinite(d)) return fallback;
  if (d >= 9223372036854775808.0 || d < -9223372036854775808.0) fail("a number does not fit a 64-bit integer");
  return Value::integer(static_cast<int64_t>(d));
}

Value round_number(const Value& value, int64_t precision, const std::string& method) {
  if (method != "common" && method != "ceil" && method != "floor") fail("method must be common, ceil or floor");
  if (method == "common") {
    if (value.is(Kind::kDouble)) return Value::number(round_decimal(value.as_double(), precision));
    if (precision >= 0) return value.is(Kind::kBool) ? Value::integer(value.as_int()) : value;
    if (precision < -18) return Value::integer(0);
    int64_t scale = 1;
    for (int64_t i = precision; i < 0; ++i) scale *= 10;
    const int64_t number = value.as_int();
    int64_t rest = number % scale;
    int64_t base = number - rest;
    if (rest < 0) {
      rest += scale;
      if (__builtin_sub_overflow(base, scale, &base)) fail("the rounded number does not fit 64 bits");
    }
    const bool is_up = rest > scale - rest || (rest == scale - rest && (base / scale) % 2 != 0);
    if (is_up && __builtin_add_overflow(base, scale, &base)) fail("the rounded number does not fit 64 bits");
    return Value::integer(base);
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = value.as_double() * scale;
  if (!std::isfinite(scaled)) fail("cannot convert float infinity or NaN to integer");
  return Value::number((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

}  // namespace pagoda::jinja
