#pragma once
// Python's methods of strings, dicts, lists and tuples, bound to a value by attribute access. Methods that would change
// a value give an undefined whose use says that they are unsafe, as jinja2's immutable sandbox does.

#include <string>

#include "chat_template/value.h"

namespace pagoda::jinja {

/// False when the value's type has no attribute of this name.
bool find_method(Interpreter& interpreter, const Value& value, const std::string& name, Value& out);

struct MethodEntry {
  const char* name;
  NativeFunction function;
};
const MethodEntry* find_string_method(std::string_view name);
const MethodEntry* find_string_split_method(std::string_view name);
const MethodEntry* find_string_class_method(std::string_view name);

}  // namespace pagoda::jinja
