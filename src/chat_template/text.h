#pragma once
// UTF-8 text that knows for each byte whether it came from the template (trusted) or from a variable.
//
// Trust is stored as the byte offsets where it changes, so text of one origin costs nothing extra. Positions are bytes;
// helpers translate Python's code point positions.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chat_template/chat_template.h"

namespace pagoda::jinja {

class Text {
 public:
  Text() = default;
  Text(std::string bytes, bool is_trusted) : bytes_(std::move(bytes)), first_trusted_(is_trusted) {}

  const std::string& bytes() const { return bytes_; }
  std::string_view view() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  /// True when no byte came from a variable; also for empty text.
  bool is_trusted() const { return bytes_.empty() || (first_trusted_ && switches_.empty()); }
  /// Bytes of memory behind this text.
  size_t footprint() const { return bytes_.capacity() + switches_.capacity() * sizeof(uint32_t); }

  void append(const Text& other);
  void append(std::string_view bytes, bool is_trusted);
  /// Bytes [begin, end) with their origin.
  Text slice(size_t begin, size_t end) const;
  void reserve(size_t bytes) { bytes_.reserve(bytes); }
  size_t capacity() const { return bytes_.capacity(); }
  void append_spans(std::vector<RenderedSpan>& out) const;
  /// Forgets text from `size` on.
  void shrink_to(size_t size) { *this = slice(0, size); }

 private:
  bool last_trusted() const { return first_trusted_ != (switches_.size() % 2 == 1); }

  std::string bytes_;
  bool first_trusted_ = true;
  std::vector<uint32_t> switches_;  ///< rising byte offsets where trust flips
};

bool is_ascii(std::string_view bytes);
size_t count_code_points(std::string_view bytes);
/// Byte offset of the code point with index `index`, or size() when there are fewer.
size_t code_point_offset(std::string_view bytes, size_t index);
/// White space as Python's str.isspace sees it.
bool is_python_space(uint32_t code_point);
/// First and one-past-last byte after removing white space (or the characters of `chars`) on the sides asked for.
struct StripSides {
  bool left = true;
  bool right = true;
};
std::pair<size_t, size_t> strip_range(std::string_view bytes, StripSides sides, const std::string_view* chars = nullptr);

}  // namespace pagoda::jinja
