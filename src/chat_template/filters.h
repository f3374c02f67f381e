#pragma once
// jinja2's filters and tests by name, and Hugging Face's tojson.

#include <string_view>

#include "chat_template/value.h"

namespace pagoda::jinja {

using TestFunction = bool (*)(Interpreter& interpreter, const Value& value, CallArguments& arguments);

/// Null when there is none of this name.
NativeFunction find_filter(std::string_view name);
TestFunction find_test(std::string_view name);
NativeFunction find_text_filter(std::string_view name);
NativeFunction find_sequence_filter(std::string_view name);
NativeFunction find_selection_filter(std::string_view name);

/// The value under a dotted attribute path ("a.b.0") or a plain index, as the filters' `attribute` argument means it.
Value attribute_path(Interpreter& interpreter, const Value& item, const Value& path);

}  // namespace pagoda::jinja
