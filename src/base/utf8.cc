#include "base/utf8.h"

namespace pagoda {

namespace {

struct Lead {
  uint8_t length;
  uint8_t second_min;  // allowed range of the second byte: excludes overlong forms and surrogates
  uint8_t second_max;
};

Lead classify(uint8_t b) {
  if (b < 0x80) return {1, 0, 0};
  if (b >= 0xC2 && b <= 0xDF) return {2, 0x80, 0xBF};
  if (b == 0xE0) return {3, 0xA0, 0xBF};
  if (b == 0xED) return {3, 0x80, 0x9F};
  if (b >= 0xE1 && b <= 0xEF) return {3, 0x80, 0xBF};
  if (b == 0xF0) return {4, 0x90, 0xBF};
  if (b >= 0xF1 && b <= 0xF3) return {4, 0x80, 0xBF};
  if (b == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Char decode_utf8(std::string_view bytes) {
  const auto first = static_cast<uint8_t>(bytes[0]);
  const Lead lead = classify(first);
  Utf8Char c;
  if (lead.length == 0) return c;
  if (lead.length == 1) return {first, 1, true, false};
  uint32_t code_point = first & (0x7Fu >> lead.length);
  for (uint8_t i = 1; i < lead.length; ++i) {
    if (i >= bytes.size()) {
      c.length = i;
      c.truncated = true;
      return c;
    }
    const auto b = static_cast<uint8_t>(bytes[i]);
    const uint8_t low = i == 1 ? lead.second_min : 0x80;
    const uint8_t high = i == 1 ? lead.second_max : 0xBF;
    if (b < low || b > high) {
      c.length = i;
      return c;
    }
    code_point = (code_point << 6) | (b & 0x3Fu);
  }
  return {code_point, lead.length, true, false};
}

void append_utf8(uint32_t cp, std::string& out) {
  if (cp < 0x80) {
    out += static_cast<char>(cp);
  } else if (cp < 0x800) {
    out += static_cast<char>(0xC0 | (cp >> 6));
    out += static_cast<char>(0x80 | (cp & 0x3F));
  } else if (cp < 0x10000) {
    out += static_cast<char>(0xE0 | (cp >> 12));
    out += static_cast<char>(0x80 | ((cp >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (cp & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (cp >> 18));
    out += static_cast<char>(0x80 | ((cp >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((cp >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (cp & 0x3F));
  }
}

bool is_valid_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const Utf8Char c = decode_utf8(bytes);
    if (!c.valid) return false;
    bytes.remove_prefix(c.length);
  }
  return true;
}

std::string repair_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Char c = decode_utf8(bytes);
    if (c.valid) {
      out.append(bytes.substr(0, c.length));
    } else {
      append_utf8(0xFFFD, out);
    }
    bytes.remove_prefix(c.length);
  }
  return out;
}

size_t complete_utf8_prefix(std::string_view bytes) {
  // A truncated character has at most three bytes, so only the tail needs decoding.
  size_t start = bytes.size() > 4 ? bytes.size() - 4 : 0;
  while (start > 0 && (static_cast<uint8_t>(bytes[start]) & 0xC0) == 0x80) --start;
  size_t pos = start;
  while (pos < bytes.size()) {
    const Utf8Char c = decode_utf8(bytes.substr(pos));
    if (c.truncated) return pos;
    pos += c.length;
  }
  return bytes.size();
}

}  // namespace pagoda
