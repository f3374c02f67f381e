#pragma once
// Python's json.dumps over template values, as Hugging Face's tojson filter calls it.

#include <optional>
#include <string>

#include "chat_template/value.h"

namespace pagoda::jinja {

struct JsonStyle {
  std::optional<std::string> indent;  ///< text of one level; absent: one line
  std::string item_separator = ", ", key_separator = ": ";
  bool ensure_ascii = false;
  bool sort_keys = false;
};

/// Fails on values that json.dumps refuses.
Text to_json_text(const Heap& heap, const Value& value, const JsonStyle& style);

}  // namespace pagoda::jinja
