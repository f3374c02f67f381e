// Numbers and padding in the styles that % and format() share.

#include <algorithm>
#include <charconv>
#include <cmath>

#include "chat_template/percent_format.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

// A double needs at most 309 digits before the point; this caps those after it.
constexpr int64_t kMaxPrecision = 1000;

std::string sign_of(bool is_negative, char sign) {
  if (is_negative) return "-";
  return sign == '+' ? "+" : sign == ' ' ? " " : "";
}

std::string grouped(std::string digits, char separator, size_t group) {
  if (separator == 0) return digits;
  for (size_t at = digits.size(); at > group;) {
    at -= group;
    digits.insert(at, 1, separator);
  }
  return digits;
}

std::string to_digits(uint64_t magnitude, int base, bool is_upper) {
  char buffer[70];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), magnitude, base);
  std::string out(buffer, result.ptr);
  if (is_upper) std::transform(out.begin(), out.end(), out.begin(), [](char c) { return c >= 'a' ? static_cast<char>(c - 32) : c; });
  return out;
}

// Python prints at least two exponent digits, as to_chars does.
std::string formatted(double magnitude, std::chars_format style, int precision) {
  char buffer[1500];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), magnitude, style, precision);
  return std::string(buffer, result.ptr);
}

// %g: significant digits, trailing zeros removed unless '#'.
std::string general(double magnitude, int precision, bool keep_zeros) {
  precision = std::max(precision, 1);
  const std::string probe = formatted(magnitude, std::chars_format::scientific, precision - 1);
  const int exponent = std::atoi(probe.c_str() + probe.find('e') + 1);
  const bool is_fixed = exponent >= -4 && exponent < precision;
  std::string out = is_fixed ? formatted(magnitude, std::chars_format::fixed, precision - 1 - exponent) : probe;
  if (keep_zeros) return out;
  const size_t e = std::min(out.find('e'), out.size());
  if (out.find('.') >= e) return out;
  size_t end = e;
  while (out[end - 1] == '0') --end;
  if (out[end - 1] == '.') --end;
  return out.substr(0, end) + out.substr(e);
}

}  // namespace

std::string format_integer(const Value& value, const FormatSpec& spec) {
  const bool is_negative = !value.is(Kind::kBigInt) && value.as_int() < 0;
  const uint64_t magnitude = value.is(Kind::kBigInt) ? value.as_big()
                             : is_negative           ? ~static_cast<uint64_t>(value.as_int()) + 1
                                                     : static_cast<uint64_t>(value.as_int());
  const char type = spec.type;
  const int base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  std::string digits = to_digits(magnitude, base, type == 'X');
  if (spec.precision > static_cast<int64_t>(digits.size())) {
    if (spec.precision > kMaxPrecision) fail_limit("a format precision is above 1000");
    digits.insert(0, static_cast<size_t>(spec.precision) - digits.size(), '0');
  }
  const std::string prefix = spec.is_alternate && base != 10 ? std::string("0") + type : "";
  return sign_of(is_negative, spec.sign) + prefix + grouped(std::move(digits), spec.grouping, base == 10 ? 3 : 4);
}

std::string format_double(double value, const FormatSpec& spec) {
  const bool is_upper = spec.type == 'F' || spec.type == 'E' || spec.type == 'G';
  if (spec.precision > kMaxPrecision) fail_limit("a format precision is above 1000");
  const std::string sign = sign_of(std::signbit(value) && !std::isnan(value), spec.sign);
  const double magnitude = std::fabs(value);
  std::string body;
  if (!std::isfinite(value)) {
    body = std::isnan(value) ? "nan" : "inf";
  } else {
    const int precision = spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
    switch (spec.type) {
      case 'e':
      case 'E': body = formatted(magnitude, std::chars_format::scientific, precision); break;
      case 'g':
      case 'G': body = general(magnitude, precision, spec.is_alternate); break;
      case '%': body = formatted(magnitude * 100, std::chars_format::fixed, precision) + "%"; break;
      case 0:
        body = spec.precision < 0 ? float_repr(magnitude) : general(magnitude, precision, false);
        if (spec.precision >= 0 && body.find_first_of(".e") == std::string::npos) body += ".0";
        break;
      default: body = formatted(magnitude, std::chars_format::fixed, precision); break;
    }
    if (spec.grouping != 0) {
      const size_t point = std::min(body.find_first_of(".e%"), body.size());
      body = grouped(body.substr(0, point), spec.grouping, 3) + body.substr(point);
    }
  }
  if (is_upper) std::transform(body.begin(), body.end(), body.begin(), [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return sign + body;
}

Text pad_text(const Heap& heap, const Text& text, const FormatSpec& spec, char default_align, size_t prefix_length) {
  const auto length = static_cast<int64_t>(count_code_points(text.view()));
  if (spec.width <= length) return text;
  const auto total = static_cast<uint64_t>(spec.width - length);
  heap.budget().check_string(total);
  heap.budget().check_memory(2 * (total * spec.fill.size() + text.size()));
  heap.budget().work(total * spec.fill.size());
  const char align = spec.align != 0 ? spec.align : default_align;
  const uint64_t left = align == '<' ? 0 : align == '^' ? total / 2 : total;
  std::string before, after;
  for (uint64_t i = 0; i < total; ++i) (i < left ? before : after) += spec.fill;
  Text out;
  const size_t cut = align == '=' ? prefix_length : 0;
  out.append(text.slice(0, cut));
  out.append(before, true);
  out.append(text.slice(cut, text.size()));
  out.append(after, true);
  return out;
}

}  // namespace pagoda::jinja
