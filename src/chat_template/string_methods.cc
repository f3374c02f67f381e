// Methods of str that give one string back or search in it.

#include <algorithm>

#include "base/utf8.h"
#include "chat_template/arguments.h"
#include "chat_template/interpreter.h"
#include "chat_template/methods.h"
#include "chat_template/percent_format.h"
#include "chat_template/string_ops.h"
#include "chat_template/unicode.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

void no_arguments(const char* name, const CallArguments& a) {
  if (!a.positional.empty() || !a.keyword.empty()) fail(std::string(name) + "() takes no arguments");
}

template <typename Map>
Value mapped(Interpreter& in, const Value& self, const char* name, const CallArguments& a, Map map) {
  no_arguments(name, a);
  in.budget().work(self.str().size() * 8);
  return in.heap().string(Text(map(self.str()), self.text().is_trusted()), self.is_markup());
}
Value upper(Interpreter& in, const Value& self, CallArguments& a) { return mapped(in, self, "upper", a, unicode::upper); }
Value lower(Interpreter& in, const Value& self, CallArguments& a) { return mapped(in, self, "lower", a, unicode::lower); }
Value casefold(Interpreter& in, const Value& self, CallArguments& a) { return mapped(in, self, "casefold", a, unicode::lower); }
Value capitalize(Interpreter& in, const Value& self, CallArguments& a) {
  return mapped(in, self, "capitalize", a, unicode::capitalize);
}
Value title(Interpreter& in, const Value& self, CallArguments& a) { return mapped(in, self, "title", a, title_case); }
Value swapcase(Interpreter& in, const Value& self, CallArguments& a) { return mapped(in, self, "swapcase", a, swap_case); }

Value strip_with(Interpreter& in, const Value& self, const char* name, const CallArguments& a, StripSides sides) {
  const BoundArguments args(name, a, {"chars"}, 0);
  return in.heap().string(strip_text(in.heap(), self.text(), args.is_absent(0) ? nullptr : &args.text(0), sides), self.is_markup());
}
Value strip(Interpreter& in, const Value& self, CallArguments& a) { return strip_with(in, self, "strip", a, {true, true}); }
Value lstrip(Interpreter& in, const Value& self, CallArguments& a) { return strip_with(in, self, "lstrip", a, {true, false}); }
Value rstrip(Interpreter& in, const Value& self, CallArguments& a) { return strip_with(in, self, "rstrip", a, {false, true}); }

// startswith and endswith: text or a tuple of texts, inside an optional code point range.
Value has_affix(Interpreter& in, const Value& self, const char* name, const CallArguments& a, bool at_start) {
  const BoundArguments args(name, a, {"prefix", "start", "end"}, 1);
  Value whole = self;
  if (!args.is_absent(1) || !args.is_absent(2)) {
    whole = slice_value(in.heap(), self, args.is_absent(1) ? Value::none() : args[1],
                        args.is_absent(2) ? Value::none() : args[2], Value::none());
  }
  const auto matches = [&](const Value& affix) {
    const std::string& text = require_text(name, affix).bytes();
    return at_start ? whole.str().starts_with(text) : whole.str().ends_with(text);
  };
  if (!args[0].is(Kind::kTuple)) return Value::boolean(matches(args[0]));
  in.budget().steps(args[0].items().size());
  return Value::boolean(std::any_of(args[0].items().begin(), args[0].items().end(), matches));
}
Value startswith(Interpreter& in, const Value& self, CallArguments& a) { return has_affix(in, self, "startswith", a, true); }
Value endswith(Interpreter& in, const Value& self, CallArguments& a) { return has_affix(in, self, "endswith", a, false); }

Value removeprefix(Interpreter& in, const Value& self, CallArguments& a) {
  const BoundArguments args("removeprefix", a, {"prefix"}, 1);
  const size_t n = self.str().starts_with(args.text(0).view()) ? args.text(0).size() : 0;
  return in.heap().string(self.text().slice(n, self.text().size()), self.is_markup());
}
Value removesuffix(Interpreter& in, const Value& self, CallArguments& a) {
  const BoundArguments args("removesuffix", a, {"suffix"}, 1);
  const size_t n = self.str().ends_with(args.text(0).view()) ? args.text(0).size() : 0;
  return in.heap().string(self.text().slice(0, self.text().size() - n), self.is_markup());
}

Value replace(Interpreter& in, const Value& self, CallArguments& a) {
  const BoundArguments args("replace", a, {"old", "new", "count"}, 2);
  const Text added = self.is_markup() ? escape_value(in.heap(), args[1]) : args.text(1);
  return in.heap().string(replace_text(in.heap(), self.text(), args.text(0), added, args.integer_or(2, -1)), self.is_markup());
}

// Position in code points, or -1.
int64_t locate(Interpreter& in, const Value& self, const char* name, const CallArguments& a, bool from_right) {
  const BoundArguments args(name, a, {"sub", "start", "end"}, 1);
  const auto or_none = [&args](size_t i) { return args.is_absent(i) ? Value::none() : args[i]; };
  const std::string& needle = args.text(0).bytes();
  const int64_t length = length_of(self);
  int64_t start = args.is_absent(1) ? 0 : args.integer_or(1, 0);
  if (start < 0) start = std::max<int64_t>(0, start < -length ? 0 : start + length);
  if (start > length) return -1;
  const Value part = slice_value(in.heap(), self, Value::integer(start), or_none(2), Value::none());
  in.budget().work(part.str().size());
  const size_t at = from_right ? part.str().rfind(needle) : part.str().find(needle);
  if (at == std::string::npos) return -1;
  return start + static_cast<int64_t>(count_code_points(std::string_view(part.str()).substr(0, at)));
}
Value find(Interpreter& in, const Value& self, CallArguments& a) { return Value::integer(locate(in, self, "find", a, false)); }
Value rfind(Interpreter& in, const Value& self, CallArguments& a) { return Value::integer(locate(in, self, "rfind", a, true)); }
Value index(Interpreter& in, const Value& self, CallArguments& a) {
  const int64_t at = locate(in, self, "index", a, false);
  if (at < 0) fail("substring not found");
  return Value::integer(at);
}
Value rindex(Interpreter& in, const Value& self, CallArguments& a) {
  const int64_t at = locate(in, self, "rindex", a, true);
  if (at < 0) fail("substring not found");
  return Value::integer(at);
}
Value count(Interpreter& in, const Value& self, CallArguments& a) {
  const BoundArguments args("count", a, {"sub", "start", "end"}, 1);
  const auto or_none = [&args](size_t i) { return args.is_absent(i) ? Value::none() : args[i]; };
  const Value part = slice_value(in.heap(), self, or_none(1), or_none(2), Value::none());
  const std::string& needle = args.text(0).bytes();
  in.budget().work(part.str().size());
  if (needle.empty()) return Value::integer(length_of(part) + 1);
  int64_t total = 0;
  for (size_t at = part.str().find(needle); at != std::string::npos; at = part.str().find(needle, at + needle.size())) ++total;
  return Value::integer(total);
}

Value pad(Interpreter& in, const Value& self, const char* name, const CallArguments& a, char align) {
  const BoundArguments args(name, a, {"width", "fillchar"}, 1);
  FormatSpec spec;
  spec.align = align;
  spec.width = args.integer_or(0, 0);
  if (args.has(1)) spec.fill = args.text(1).bytes();
  if (count_code_points(spec.fill) != 1) fail("the fill character must be exactly one character long");
  if (align == '^') return in.heap().string(center_text(in.heap(), self.text(), spec.width, spec.fill), self.is_markup());
  return in.heap().string(pad_text(in.heap(), self.text(), spec, align, 0), self.is_markup());
}
Value center(Interpreter& in, const Value& self, CallArguments& a) { return pad(in, self, "center", a, '^'); }
Value ljust(Interpreter& in, const Value& self, CallArguments& a) { return pad(in, self, "ljust", a, '<'); }
Value rjust(Interpreter& in, const Value& self, CallArguments& a) { return pad(in, self, "rjust", a, '>'); }
Value zfill(Interpreter& in, const Value& self, CallArguments& a) {
  const BoundArguments args("zfill", a, {"width"}, 1);
  FormatSpec spec;
  spec.align = '=';
  spec.fill = "0";
  spec.width = args.integer_or(0, 0);
  const bool has_sign = self.str().starts_with('+') || self.str().starts_with('-');
  return in.heap().string(pad_text(in.heap(), self.text(), spec, '=', has_sign ? 1 : 0), self.is_markup());
}

Value expandtabs(Interpreter& in, const Value& self, CallArguments& a) {
  const BoundArguments args("expandtabs", a, {"tabsize"}, 0);
  return in.heap().string(expand_tabs(in.heap(), self.text(), args.integer_or(0, 8)), self.is_markup());
}

Value format(Interpreter& in, const Value& self, CallArguments& a) { return brace_format(in, self, a); }
Value format_map(Interpreter& in, const Value& self, CallArguments& a) {
  const BoundArguments args("format_map", a, {"mapping"}, 1);
  if (!args[0].is(Kind::kDict)) fail("format_map() needs a mapping");
  CallArguments named;
  for (const auto& [key, value] : args[0].dict().entries()) {
    in.budget().step();
    if (key.is_string()) named.keyword.emplace_back(key.str(), value);
  }
  return brace_format(in, self, named);
}

constexpr MethodEntry kMethods[] = {
    {"upper", upper},           {"lower", lower},         {"casefold", casefold}, {"capitalize", capitalize},
    {"title", title},           {"swapcase", swapcase},   {"strip", strip},       {"lstrip", lstrip},
    {"rstrip", rstrip},         {"startswith", startswith}, {"endswith", endswith}, {"removeprefix", removeprefix},
    {"removesuffix", removesuffix}, {"replace", replace}, {"find", find},         {"rfind", rfind},
    {"index", index},           {"rindex", rindex},       {"count", count},       {"center", center},
    {"ljust", ljust},           {"rjust", rjust},         {"zfill", zfill},       {"expandtabs", expandtabs},
    {"format", format},         {"format_map", format_map},
};

}  // namespace

const MethodEntry* find_string_method(std::string_view name) {
  for (const MethodEntry& entry : kMethods) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace pagoda::jinja
