#pragma once
// What str methods and text filters share. Results keep each part's origin where the operation moves parts whole.

#include <cstdint>
#include <string>
#include <string_view>

#include "chat_template/value.h"

namespace pagoda::jinja {

/// White space when `chars` is null.
Text strip_text(const Heap& heap, const Text& text, const Text* chars, StripSides sides);
/// At most `count` replacements; negative: all.
Text replace_text(const Heap& heap, const Text& text, const Text& old_part, const Text& new_part, int64_t count);
/// Python's str.center.
Text center_text(const Heap& heap, const Text& text, int64_t width, std::string_view fill);
Text expand_tabs(const Heap& heap, const Text& text, int64_t tab_size);
std::string title_case(std::string_view text);
std::string swap_case(std::string_view text);
/// str.splitlines, without line ends unless `keep_ends`.
Values split_lines(const Heap& heap, const Value& value, bool keep_ends);
/// Builds a text from parts and checks every limit before a part is copied.
class TextBuilder {
 public:
  explicit TextBuilder(const Heap& heap) : heap_(heap) {}
  void append(const Text& part);
  Text take() { return std::move(out_); }

 private:
  const Heap& heap_;
  Text out_;
};

}  // namespace pagoda::jinja
