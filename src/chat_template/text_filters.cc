// Filters whose input is text, and the conversions.

#include <cmath>
#include <cstdlib>

#include "base/utf8.h"
#include "chat_template/arguments.h"
#include "chat_template/filters.h"
#include "chat_template/interpreter.h"
#include "chat_template/json_text.h"
#include "chat_template/percent_format.h"
#include "chat_template/string_ops.h"
#include "chat_template/unicode.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

// soft_str: text stays as it is, anything else is printed.
Value soft(Interpreter& in, const Value& v) { return v.is_string() ? v : in.heap().string(to_text(in.heap(), v)); }

template <typename Map>
Value mapped(Interpreter& in, const Value& v, const CallArguments& a, Map map) {
  const BoundArguments args("filter", a, {}, 0);
  const Value text = soft(in, v);
  in.budget().work(text.str().size() * 8);
  return in.heap().string(Text(map(text.str()), text.text().is_trusted()), text.is_markup());
}
Value upper(Interpreter& in, const Value& v, CallArguments& a) { return mapped(in, v, a, unicode::upper); }
Value lower(Interpreter& in, const Value& v, CallArguments& a) { return mapped(in, v, a, unicode::lower); }
Value capitalize(Interpreter& in, const Value& v, CallArguments& a) { return mapped(in, v, a, unicode::capitalize); }

// jinja2's title: words start after white space or one of - ( { [ <.
std::string title_words(std::string_view s) {
  std::string out;
  bool at_start = true;
  for (size_t at = 0; at < s.size();) {
    const Utf8Char c = decode_utf8(s.substr(at));
    const bool is_break = is_python_space(c.code_point) || (c.code_point < 0x80 && std::string_view("-({[<").find(static_cast<char>(c.code_point)) != std::string_view::npos);
    at_start ? unicode::append_upper(c.code_point, out) : unicode::append_lower(c.code_point, out);
    at_start = is_break;
    at += c.length;
  }
  return out;
}
Value title(Interpreter& in, const Value& v, CallArguments& a) {
  const Value out = mapped(in, v, a, title_words);
  return in.heap().string(out.text());
}

Value trim(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("trim", a, {"chars"}, 0);
  const Value text = soft(in, v);
  return in.heap().string(strip_text(in.heap(), text.text(), args.is_absent(0) ? nullptr : &args.text(0), {true, true}), text.is_markup());
}
Value replace(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("replace", a, {"old", "new", "count"}, 2);
  const int64_t count = args.is_absent(2) ? -1 : args.integer_or(2, -1);
  return in.heap().string(replace_text(in.heap(), to_text(in.heap(), v), to_text(in.heap(), args[0]), to_text(in.heap(), args[1]), count));
}
Value string(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("string", a, {}, 0);
  return soft(in, v);
}
Value safe(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("safe", a, {}, 0);
  return in.heap().string(to_text(in.heap(), v), true);
}
Value escape(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("escape", a, {}, 0);
  return in.heap().string(escape_value(in.heap(), v), true);
}
Value force_escape(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("forceescape", a, {}, 0);
  return in.heap().string(escape_html(in.heap(), to_text(in.heap(), v)), true);
}
Value center(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("center", a, {"width"}, 0);
  const Value text = soft(in, v);
  return in.heap().string(center_text(in.heap(), text.text(), args.integer_or(0, 80), " "), text.is_markup());
}
Value format(Interpreter& in, const Value& v, CallArguments& a) {
  if (!a.positional.empty() && !a.keyword.empty()) fail("format: can't handle positional and keyword arguments at the same time");
  if (a.keyword.empty()) return percent_format(in.heap(), soft(in, v), in.heap().tuple(a.positional));
  auto named = in.heap().dict();
  for (const auto& [name, value] : a.keyword) named->set(in.heap().string(name), value);
  return percent_format(in.heap(), soft(in, v), Value(Kind::kDict, std::move(named)));
}

Value indent(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("indent", a, {"width", "first", "blank"}, 0);
  require_defined(v);
  if (!v.is_string()) fail("indent: a string is required, not " + std::string(type_name(v)));
  Text indention;
  if (args.has(0) && args[0].is_string()) {
    indention = args[0].text();
  } else {
    const int64_t width = args.integer_or(0, 4);
    in.budget().check_string(width < 0 ? 0 : static_cast<uint64_t>(width));
    in.budget().check_memory(width < 0 ? 0 : static_cast<uint64_t>(width));
    indention = Text(std::string(width < 0 ? 0 : static_cast<size_t>(width), ' '), true);
  }
  const bool first = args.bool_or(1, false);
  const bool blank = args.bool_or(2, false);
  Values lines = split_lines(in.heap(), v, false);
  // jinja2 appends a newline before it splits, so a text that ends in one keeps an empty last line.
  const std::string& s = v.str();
  if (s.empty() || s.back() == '\n' || s.back() == '\r') lines.push_back(in.heap().string(""));
  TextBuilder out(in.heap());
  const Text newline("\n", true);
  if (first) out.append(indention);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.append(newline);
    if (i > 0 && (blank || !lines[i].text().empty())) out.append(indention);
    out.append(lines[i].text());
  }
  return in.heap().string(out.take(), v.is_markup());
}

Value truncate(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("truncate", a, {"length", "killwords", "end", "leeway"}, 0);
  const Heap& heap = in.heap();
  require_defined(v);
  if (!v.is_string()) fail("truncate: a string is required, not " + std::string(type_name(v)));
  const Value end = args.has(2) ? args[2] : heap.string("...");
  require_text("truncate", end);
  const int64_t length = args.integer_or(0, 255);
  const int64_t leeway = args.is_absent(3) ? 5 : args.integer_or(3, 5);
  if (length < length_of(end) || leeway < 0) fail("truncate: length must be at least the end's length and leeway not negative");
  if (length_of(v) - leeway <= length) return v;
  const Value cut = slice_value(heap, v, Value::none(), Value::integer(length - length_of(end)), Value::none());
  Text text = cut.text();
  if (!args.bool_or(1, false)) {
    const size_t space = text.bytes().rfind(' ');
    if (space != std::string::npos) text = text.slice(0, space);
  }
  text.append(end.text());
  return heap.string(std::move(text), v.is_markup());
}

Value wordcount(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("wordcount", a, {}, 0);
  const Value text = soft(in, v);
  const std::string_view s = text.str();
  in.budget().work(s.size() * 8);
  int64_t count = 0;
  bool inside = false;
  for (size_t at = 0; at < s.size();) {
    const Utf8Char c = decode_utf8(s.substr(at));
    const bool is_word = c.code_point == '_' || unicode::is_alnum(c.code_point);
    count += is_word && !inside ? 1 : 0;
    inside = is_word;
    at += c.length;
  }
  return Value::integer(count);
}

Value urlencode(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("urlencode", a, {}, 0);
  const auto quote = [&in](const Value& value, bool in_query) {
    const Text text = to_text(in.heap(), value);
    in.budget().work(text.size() * 4);
    std::string out;
    for (const char c : text.bytes()) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x80 && (unicode::is_alpha(byte) || (c >= '0' && c <= '9') || std::string_view("_.-~").find(c) != std::string_view::npos || (c == '/' && !in_query))) out += c;
      else if (c == ' ' && in_query) out += '+';
      else (out += '%'), (out += "0123456789ABCDEF"[byte >> 4]), (out += "0123456789ABCDEF"[byte & 15]);
    }
    return Text(std::move(out), text.is_trusted());
  };
  if (v.is_string() || !is_iterable(v)) return in.heap().string(quote(v, false));
  TextBuilder out(in.heap());
  bool is_first = true;
  const auto pair = [&](const Value& key, const Value& value) {
    if (!std::exchange(is_first, false)) out.append(Text("&", true));
    out.append(quote(key, true));
    out.append(Text("=", true));
    out.append(quote(value, true));
  };
  if (v.is(Kind::kDict)) {
    for (const auto& [key, value] : v.dict().entries()) pair(key, value);
  } else {
    for (const Value& item : iterate(in.heap(), v)) {
      const Values parts = iterate(in.heap(), item);
      if (parts.size() != 2) fail("urlencode: pairs are required");
      pair(parts[0], parts[1]);
    }
  }
  return in.heap().string(out.take());
}

Value tojson(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("tojson", a, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
  JsonStyle style;
  style.ensure_ascii = args.bool_or(0, false);
  style.sort_keys = args.bool_or(3, false);
  if (!args.is_absent(1)) {
    if (args[1].is_string()) {
      style.indent = args[1].str();
    } else {
      const int64_t width = args.integer_or(1, 0);
      in.budget().check_string(width < 0 ? 0 : static_cast<uint64_t>(width));
      in.budget().check_memory(width < 0 ? 0 : static_cast<uint64_t>(width));
      style.indent = std::string(width < 0 ? 0 : static_cast<size_t>(width), ' ');
    }
    style.item_separator = ",";
  }
  if (!args.is_absent(2)) {
    const Values pair = iterate(in.heap(), args[2]);
    if (pair.size() != 2) fail("tojson: separators must be (item separator, key separator)");
    style.item_separator = require_text("tojson", pair[0]).bytes();
    style.key_separator = require_text("tojson", pair[1]).bytes();
  }
  return in.heap().string(to_json_text(in.heap(), v, style));
}

constexpr struct {
  std::string_view name;
  NativeFunction function;
} kFilters[] = {
    {"upper", upper},         {"lower", lower},       {"capitalize", capitalize}, {"title", title},
    {"trim", trim},           {"replace", replace},   {"string", string},         {"safe", safe},
    {"escape", escape},       {"e", escape},          {"forceescape", force_escape}, {"center", center},
    {"format", format},       {"indent", indent},     {"truncate", truncate},     {"wordcount", wordcount},
    {"urlencode", urlencode}, {"tojson", tojson},
};

}  // namespace

NativeFunction find_text_filter(std::string_view name) {
  for (const auto& entry : kFilters) {
    if (entry.name == name) return entry.function;
  }
  return nullptr;
}

}  // namespace pagoda::jinja
