#pragma once
// Python's two ways to format: '...' % values and '...'.format(values).

#include "chat_template/value.h"

namespace pagoda::jinja {

/// `format % arguments`: a tuple gives several, a dict gives names, anything else is the only argument.
Value percent_format(const Heap& heap, const Value& format, const Value& arguments);

/// str.format; attribute and item access inside fields go through the interpreter's own rules.
Value brace_format(Interpreter& interpreter, const Value& format, CallArguments& arguments);

struct FormatSpec {
  std::string fill = " ";
  char align = 0;  ///< < > ^ = or 0 for the type's own
  char sign = '-';
  bool is_alternate = false;
  char grouping = 0;
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};
/// A number in the style of `spec`, without padding.
std::string format_integer(const Value& value, const FormatSpec& spec);
std::string format_double(double value, const FormatSpec& spec);
/// `text` padded to the width; `prefix_length` bytes of sign and base prefix stay left of '=' padding.
Text pad_text(const Heap& heap, const Text& text, const FormatSpec& spec, char default_align, size_t prefix_length);

}  // namespace pagoda::jinja
