// Filters that choose: default, attr, map, select, reject, selectattr, rejectattr; and the filter table as a whole.

#include "chat_template/arguments.h"
#include "chat_template/filters.h"
#include "chat_template/interpreter.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

Value default_value(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("default", a, {"default_value", "boolean"}, 0);
  if (!v.is_undefined() && !(args.bool_or(1, false) && !is_true(v))) return v;
  return args.has(0) ? args[0] : in.heap().string("");
}

Value attr(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("attr", a, {"name"}, 1);
  const std::string& name = args.text(0).bytes();
  if (name.starts_with("__")) fail("access to attribute '" + name.substr(0, 100) + "' is unsafe");
  require_defined(v);
  Value out;
  if (in.find_attribute(v, name, out)) return out;
  return in.heap().undefined("'" + std::string(type_name(v)) + " object' has no attribute '" + name.substr(0, 100) + "'");
}

// Removes the keyword `name` from the call and gives its value.
bool take_keyword(CallArguments& a, std::string_view name, Value& out) {
  for (auto it = a.keyword.begin(); it != a.keyword.end(); ++it) {
    if (it->first != name) continue;
    out = it->second;
    a.keyword.erase(it);
    return true;
  }
  return false;
}

Value map(Interpreter& in, const Value& v, CallArguments& a) {
  Values out;
  if (!is_true(v)) return in.heap().iterator({});
  Value attribute;
  if (a.positional.empty() && take_keyword(a, "attribute", attribute)) {
    Value fallback = Value::none();
    take_keyword(a, "default", fallback);
    if (!a.keyword.empty()) fail("Unexpected keyword argument '" + a.keyword.front().first + "'");
    for (const Value& item : iterate(in.heap(), v)) {
      Value found = attribute.is_none() ? item : attribute_path(in, item, attribute);
      out.push_back(found.is_undefined() && !fallback.is_none() ? fallback : found);
    }
    return in.heap().iterator(std::move(out));
  }
  if (a.positional.empty()) fail("map requires a filter argument");
  const std::string name = require_text("map", a.positional[0]).bytes();
  for (const Value& item : iterate(in.heap(), v)) {
    CallArguments rest;
    rest.positional.assign(a.positional.begin() + 1, a.positional.end());
    rest.keyword = a.keyword;
    out.push_back(in.apply_filter(name, item, rest));
  }
  return in.heap().iterator(std::move(out));
}

Value choose(Interpreter& in, const Value& v, CallArguments& a, bool wanted, bool by_attribute) {
  if (!is_true(v)) return in.heap().iterator({});
  const size_t offset = by_attribute ? 1 : 0;
  if (by_attribute && a.positional.empty()) fail("Missing parameter for attribute name");
  const bool has_test = a.positional.size() > offset;
  const std::string test = has_test ? require_text("select", a.positional[offset]).bytes() : "";
  Values out;
  for (const Value& item : iterate(in.heap(), v)) {
    const Value subject = by_attribute ? attribute_path(in, item, a.positional[0]) : item;
    bool holds = is_true(subject);
    if (has_test) {
      CallArguments rest;
      rest.positional.assign(a.positional.begin() + static_cast<ptrdiff_t>(offset) + 1, a.positional.end());
      rest.keyword = a.keyword;
      holds = in.apply_test(test, subject, rest);
    }
    if (holds == wanted) out.push_back(item);
  }
  return in.heap().iterator(std::move(out));
}
Value select(Interpreter& in, const Value& v, CallArguments& a) { return choose(in, v, a, true, false); }
Value reject(Interpreter& in, const Value& v, CallArguments& a) { return choose(in, v, a, false, false); }
Value selectattr(Interpreter& in, const Value& v, CallArguments& a) { return choose(in, v, a, true, true); }
Value rejectattr(Interpreter& in, const Value& v, CallArguments& a) { return choose(in, v, a, false, true); }

constexpr struct {
  std::string_view name;
  NativeFunction function;
} kFilters[] = {
    {"default", default_value}, {"d", default_value},       {"attr", attr},             {"map", map},
    {"select", select},         {"reject", reject},         {"selectattr", selectattr}, {"rejectattr", rejectattr},
};

}  // namespace

NativeFunction find_selection_filter(std::string_view name) {
  for (const auto& entry : kFilters) {
    if (entry.name == name) return entry.function;
  }
  return nullptr;
}

NativeFunction find_filter(std::string_view name) {
  if (const NativeFunction filter = find_selection_filter(name)) return filter;
  if (const NativeFunction filter = find_text_filter(name)) return filter;
  return find_sequence_filter(name);
}

}  // namespace pagoda::jinja
