#include "chat_template/unicode.h"

#include <algorithm>

#include "base/utf8.h"
#include "chat_template/unicode_table.h"

namespace pagoda::jinja::unicode {
namespace {

template <typename Table>
bool in_table(const Table& table, uint32_t c) {
  const auto it = std::upper_bound(table.begin(), table.end(), c, [](uint32_t v, const auto& row) { return v < row.first; });
  return it != table.begin() && c <= std::prev(it)->last;
}

template <typename Runs, typename Specials>
void append_mapped(const Runs& runs, const Specials& specials, uint32_t c, std::string& out) {
  const auto special = std::lower_bound(specials.begin(), specials.end(), c,
                                        [](const SpecialCase& row, uint32_t v) { return row.code_point < v; });
  if (special != specials.end() && special->code_point == c) {
    out += special->text;
    return;
  }
  const auto it = std::upper_bound(runs.begin(), runs.end(), c, [](uint32_t v, const CaseRun& row) { return v < row.first; });
  if (it != runs.begin()) {
    const CaseRun& run = *std::prev(it);
    if (c <= run.last && (c - run.first) % run.stride == 0) c = static_cast<uint32_t>(static_cast<int64_t>(c) + run.delta);
  }
  append_utf8(c, out);
}

template <typename Append>
std::string map_text(std::string_view text, Append append) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text.substr(at));
    append(c.code_point, out);
    at += c.length;
  }
  return out;
}

}  // namespace

bool is_alpha(uint32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return in_table(kAlpha, c);
}
bool is_numeric(uint32_t c) { return in_table(kNumeric, c); }
bool is_decimal(uint32_t c) { return in_table(kDecimal, c); }
bool is_digit(uint32_t c) { return in_table(kDigit, c); }
bool is_alnum(uint32_t c) { return is_alpha(c) || is_numeric(c); }
bool is_printable(uint32_t c) {
  if (c < 0x80) return c >= 0x20 && c != 0x7F;
  return !in_table(kNotPrintable, c);
}
bool is_lower(uint32_t c) { return in_table(kLower, c); }
bool is_upper(uint32_t c) { return in_table(kUpper, c); }

void append_lower(uint32_t c, std::string& out) {
  if (c < 0x80) out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  else append_mapped(kToLower, kLowerSpecial, c, out);
}
void append_upper(uint32_t c, std::string& out) {
  if (c < 0x80) out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  else append_mapped(kToUpper, kUpperSpecial, c, out);
}
void append_title(uint32_t c, std::string& out) {
  if (c < 0x80) append_upper(c, out);
  else append_mapped(kToTitle, kTitleSpecial, c, out);
}

std::string lower(std::string_view text) { return map_text(text, append_lower); }
std::string upper(std::string_view text) { return map_text(text, append_upper); }
std::string capitalize(std::string_view text) {
  if (text.empty()) return "";
  const Utf8Char first = decode_utf8(text);
  std::string out;
  append_title(first.code_point, out);
  return out + lower(text.substr(first.length));
}

}  // namespace pagoda::jinja::unicode
