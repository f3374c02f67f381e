#include "chat_template/string_ops.h"

#include "base/utf8.h"
#include "chat_template/unicode.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {

Text strip_text(const Heap& heap, const Text& text, const Text* chars, StripSides sides) {
  heap.budget().work(text.size());
  const std::string_view set = chars != nullptr ? chars->view() : std::string_view();
  // Each stripped character is looked up in the whole set.
  if (chars != nullptr && set.size() > 64) heap.budget().work(text.size() * (set.size() / 64));
  const auto [begin, end] = strip_range(text.view(), sides, chars != nullptr ? &set : nullptr);
  return text.slice(begin, end);
}

Text replace_text(const Heap& heap, const Text& text, const Text& old_part, const Text& new_part, int64_t count) {
  heap.budget().work(text.size());
  uint64_t left = count < 0 ? UINT64_MAX : static_cast<uint64_t>(count);
  TextBuilder out(heap);
  size_t from = 0;
  if (old_part.empty()) {  // between all characters
    while (left > 0) {
      out.append(new_part);
      --left;
      if (from >= text.size()) return out.take();
      const size_t length = decode_utf8(text.view().substr(from)).length;
      out.append(text.slice(from, from + length));
      from += length;
    }
  }
  while (left-- > 0 && !old_part.empty()) {
    const size_t at = text.bytes().find(old_part.bytes(), from);
    if (at == std::string::npos) break;
    out.append(text.slice(from, at));
    out.append(new_part);
    from = at + old_part.size();
  }
  out.append(text.slice(from, text.size()));
  return out.take();
}

Text center_text(const Heap& heap, const Text& text, int64_t width, std::string_view fill) {
  const auto length = static_cast<int64_t>(count_code_points(text.view()));
  if (width <= length) return text;
  const auto total = static_cast<uint64_t>(width - length);
  heap.budget().check_string(total);
  heap.budget().check_memory(2 * (text.size() + total * fill.size()));
  heap.budget().work(total * fill.size());
  const uint64_t left = total / 2 + (total & static_cast<uint64_t>(width) & 1);
  Text out;
  for (uint64_t i = 0; i < left; ++i) out.append(fill, true);
  out.append(text);
  for (uint64_t i = left; i < total; ++i) out.append(fill, true);
  return out;
}

Text expand_tabs(const Heap& heap, const Text& text, int64_t tab_size) {
  Text out;
  int64_t column = 0;
  for (size_t at = 0; at < text.size();) {
    heap.budget().step();
    const Utf8Char c = decode_utf8(text.view().substr(at));
    if (c.code_point == '\t') {
      const int64_t spaces = tab_size > 0 ? tab_size - column % tab_size : 0;
      heap.budget().check_string(out.size() + static_cast<uint64_t>(spaces));
      heap.budget().check_memory(2 * (out.size() + static_cast<uint64_t>(spaces)));
      heap.budget().work(static_cast<uint64_t>(spaces));
      out.append(std::string(static_cast<size_t>(spaces), ' '), true);
      column += spaces;
    } else {
      out.append(text.slice(at, at + c.length));
      column = c.code_point == '\n' || c.code_point == '\r' ? 0 : column + 1;
    }
    at += c.length;
  }
  return out;
}

std::string title_case(std::string_view text) {
  std::string out;
  bool after_letter = false;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text.substr(at));
    after_letter ? unicode::append_lower(c.code_point, out) : unicode::append_title(c.code_point, out);
    after_letter = unicode::is_alpha(c.code_point);
    at += c.length;
  }
  return out;
}

std::string swap_case(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text.substr(at));
    unicode::is_upper(c.code_point) ? unicode::append_lower(c.code_point, out) : unicode::append_upper(c.code_point, out);
    at += c.length;
  }
  return out;
}

Values split_lines(const Heap& heap, const Value& value, bool keep_ends) {
  const Text& text = value.text();
  heap.budget().work(text.size() * 4);
  Values out;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text.view().substr(at));
    const uint32_t p = c.code_point;
    size_t next = at + c.length;
    if ((p >= 0x0A && p <= 0x0D) || (p >= 0x1C && p <= 0x1E) || p == 0x85 || p == 0x2028 || p == 0x2029) {
      if (p == '\r' && next < text.size() && text.bytes()[next] == '\n') ++next;
      heap.budget().step();
      out.push_back(heap.string(text.slice(begin, keep_ends ? next : at), value.is_markup()));
      begin = next;
    }
    at = next;
  }
  if (begin < text.size()) out.push_back(heap.string(text.slice(begin, text.size()), value.is_markup()));
  return out;
}

void TextBuilder::append(const Text& part) {
  heap_.budget().steps(1 + part.size() / 64);
  heap_.budget().check_string(out_.size() + part.size());
  // The string doubles as it grows, so old and new together are at most three times what is needed.
  if (out_.size() + part.size() > out_.capacity()) heap_.budget().check_memory(2 * (out_.size() + part.size()));
  out_.append(part);
}

}  // namespace pagoda::jinja
