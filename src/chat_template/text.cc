#include "chat_template/text.h"

#include <algorithm>

#include "base/utf8.h"

namespace pagoda::jinja {

void Text::append(const Text& other) {
  if (other.empty()) return;
  if (bytes_.empty()) {
    first_trusted_ = other.first_trusted_;
    switches_.clear();
  } else if (last_trusted() != other.first_trusted_) {
    switches_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
  const auto offset = static_cast<uint32_t>(bytes_.size());
  for (const uint32_t at : other.switches_) switches_.push_back(offset + at);
  bytes_ += other.bytes_;
}

void Text::append(std::string_view bytes, bool is_trusted) {
  if (bytes.empty()) return;
  if (bytes_.empty()) {
    first_trusted_ = is_trusted;
    switches_.clear();
  } else if (last_trusted() != is_trusted) {
    switches_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
  bytes_ += bytes;
}

Text Text::slice(size_t begin, size_t end) const {
  end = std::min(end, bytes_.size());
  Text out;
  if (begin >= end) return out;
  out.bytes_ = bytes_.substr(begin, end - begin);
  const auto first = std::upper_bound(switches_.begin(), switches_.end(), static_cast<uint32_t>(begin));
  const auto last = std::lower_bound(first, switches_.end(), static_cast<uint32_t>(end));
  out.first_trusted_ = first_trusted_ != ((first - switches_.begin()) % 2 == 1);
  for (auto it = first; it != last; ++it) out.switches_.push_back(*it - static_cast<uint32_t>(begin));
  return out;
}

void Text::append_spans(std::vector<RenderedSpan>& out) const {
  if (bytes_.empty()) return;
  bool is_trusted = first_trusted_;
  size_t begin = 0;
  for (size_t i = 0; i <= switches_.size(); ++i) {
    const size_t end = i < switches_.size() ? switches_[i] : bytes_.size();
    out.push_back({bytes_.substr(begin, end - begin), is_trusted});
    is_trusted = !is_trusted;
    begin = end;
  }
}

bool is_ascii(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

size_t count_code_points(std::string_view bytes) {
  return static_cast<size_t>(
      std::count_if(bytes.begin(), bytes.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

size_t code_point_offset(std::string_view bytes, size_t index) {
  size_t seen = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    if ((static_cast<unsigned char>(bytes[at]) & 0xC0) == 0x80) continue;
    if (seen == index) return at;
    ++seen;
  }
  return bytes.size();
}

bool is_python_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::pair<size_t, size_t> strip_range(std::string_view bytes, StripSides sides, const std::string_view* chars) {
  const auto removed = [chars](std::string_view character) {
    if (chars != nullptr) return chars->find(character) != std::string_view::npos;
    return is_python_space(decode_utf8(character).code_point);
  };
  size_t begin = 0;
  size_t end = bytes.size();
  while (sides.left && begin < end) {
    const size_t length = decode_utf8(bytes.substr(begin)).length;
    if (!removed(bytes.substr(begin, length))) break;
    begin += length;
  }
  while (sides.right && end > begin) {
    size_t start = end - 1;
    while (start > begin && (static_cast<unsigned char>(bytes[start]) & 0xC0) == 0x80) --start;
    if (!removed(bytes.substr(start, end - start))) break;
    end = start;
  }
  return {begin, end};
}

}  // namespace pagoda::jinja
