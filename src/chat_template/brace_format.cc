// str.format. Fields may name attributes and items; those go through the interpreter, which knows no host objects.

#include <algorithm>

#include "base/utf8.h"
#include "chat_template/interpreter.h"
#include "chat_template/percent_format.h"
#include "chat_template/string_ops.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

constexpr int64_t kMaxWidth = 1 << 24;

class BraceFormatter {
 public:
  BraceFormatter(Interpreter& in, const CallArguments& arguments) : in_(in), arguments_(arguments) {}

  Text run(const Text& format, int depth) {
    if (depth < 0) fail("Max string recursion exceeded");
    TextBuilder out(in_.heap());
    const std::string& s = format.bytes();
    for (size_t at = 0; at < s.size();) {
      const size_t brace = std::min(s.find_first_of("{}", at), s.size());
      out.append(format.slice(at, brace));
      at = brace;
      if (at >= s.size()) break;
      if (at + 1 < s.size() && s[at + 1] == s[at]) {
        out.append(format.slice(at, at + 1));
        at += 2;
        continue;
      }
      if (s[at] == '}') fail("Single '}' encountered in format string");
      const size_t end = closing(s, at);
      out.append(field(format.slice(at + 1, end), depth));
      at = end + 1;
    }
    return out.take();
  }

 private:
  static size_t closing(const std::string& s, size_t open) {
    int depth = 0;
    for (size_t at = open; at < s.size(); ++at) {
      depth += s[at] == '{' ? 1 : s[at] == '}' ? -1 : 0;
      if (depth == 0) return at;
    }
    fail("expected '}' before end of string");
  }

  Text field(const Text& whole, int depth) {
    const std::string& s = whole.bytes();
    size_t name_end = 0;
    bool in_brackets = false;
    while (name_end < s.size() && (in_brackets || (s[name_end] != '!' && s[name_end] != ':'))) {
      in_brackets = s[name_end] == '[' || (in_brackets && s[name_end] != ']');
      ++name_end;
    }
    char conversion = 0;
    size_t at = name_end;
    if (at < s.size() && s[at] == '!') {
      if (at + 1 >= s.size()) fail("unmatched '{' in format spec");
      conversion = s[at + 1];
      at += 2;
      if (at < s.size() && s[at] != ':') fail("expected ':' after conversion specifier");
    }
    Value value = lookup(s.substr(0, name_end));
    const Text spec_text = at < s.size() ? run(whole.slice(at + 1, s.size()), depth - 1) : Text();
    if (conversion == 's') value = in_.heap().string(to_text(in_.heap(), value));
    else if (conversion == 'r' || conversion == 'a') value = in_.heap().string(to_repr(in_.heap(), value));
    else if (conversion != 0) fail(std::string("Unknown conversion specifier ") + conversion);
    return formatted(value, spec_text.bytes());
  }

  Value lookup(const std::string& name) {
    size_t at = std::min(name.find_first_of(".["), name.size());
    Value value = first(name.substr(0, at));
    while (at < name.size()) {
      in_.budget().step();
      if (name[at] == '.') {
        const size_t end = std::min(name.find_first_of(".[", at + 1), name.size());
        if (end == at + 1) fail("Empty attribute in format string");
        value = in_.get_attribute(value, in_.heap().string(name.substr(at + 1, end - at - 1)));
        at = end;
      } else {
        const size_t end = name.find(']', at);
        if (name[at] != '[' || end == std::string::npos || end == at + 1) fail("invalid field in format string");
        const std::string key = name.substr(at + 1, end - at - 1);
        value = in_.get_item_or_attribute(value, is_number(key) ? Value::integer(std::stoll(key)) : in_.heap().string(key));
        at = end + 1;
      }
    }
    return value;
  }

  static bool is_number(const std::string& s) {
    return !s.empty() && s.size() < 18 && s.find_first_not_of("0123456789") == std::string::npos;
  }

  Value first(const std::string& name) {
    if (name.empty() || is_number(name)) {
      const bool is_automatic = name.empty();
      if (numbering_ != 0 && numbering_ != (is_automatic ? 'a' : 'm')) {
        fail("cannot switch between manual field specification and automatic field numbering");
      }
      numbering_ = is_automatic ? 'a' : 'm';
      const size_t index = is_automatic ? next_++ : static_cast<size_t>(std::stoll(name));
      if (index >= arguments_.positional.size()) fail("Replacement index out of range for positional args tuple");
      return arguments_.positional[index];
    }
    for (const auto& [key, value] : arguments_.keyword) {
      if (key == name) return value;
    }
    fail("the format names '" + name.substr(0, 100) + "', which was not given");
  }

  static FormatSpec parse_spec(const std::string& s) {
    FormatSpec spec;
    size_t at = 0;
    const auto is_align = [&s](size_t i) { return i < s.size() && std::string_view("<>=^").find(s[i]) != std::string_view::npos; };
    const size_t first_length = s.empty() ? 0 : decode_utf8(s).length;
    if (!s.empty() && is_align(first_length)) {
      spec.fill = s.substr(0, first_length);
      spec.align = s[first_length];
      at = first_length + 1;
    } else if (is_align(0)) {
      spec.align = s[at++];
    }
    if (at < s.size() && (s[at] == '+' || s[at] == '-' || s[at] == ' ')) spec.sign = s[at++];
    if (at < s.size() && s[at] == '#') spec.is_alternate = s[at++] == '#';
    if (at < s.size() && s[at] == '0') {
      if (spec.align == 0) {
        spec.fill = "0";
        spec.align = '=';
      }
      ++at;
    }
    const auto number = [&] {
      int64_t value = 0;
      while (at < s.size() && s[at] >= '0' && s[at] <= '9') {
        value = value * 10 + (s[at++] - '0');
        if (value > kMaxWidth) fail_limit("a format width or precision is too big");
      }
      return value;
    };
    spec.width = number();
    if (at < s.size() && (s[at] == ',' || s[at] == '_')) spec.grouping = s[at++];
    if (at < s.size() && s[at] == '.') {
      ++at;
      if (at >= s.size() || s[at] < '0' || s[at] > '9') fail("Format specifier missing precision");
      spec.precision = number();
    }
    if (at < s.size()) spec.type = s[at++];
    if (at < s.size()) fail("Invalid format specifier '" + s.substr(0, 100) + "'");
    return spec;
  }

  Text formatted(const Value& value, const std::string& spec_text) {
    const Heap& heap = in_.heap();
    if (spec_text.empty()) return to_text(heap, value);
    FormatSpec spec = parse_spec(spec_text);
    if (value.is_string() || value.is(Kind::kBool)) {
      if (!value.is_string() && spec.type != 0 && spec.type != 's') return numeric(Value::integer(value.as_int()), spec);
      if ((spec.type != 0 && spec.type != 's') || spec.sign != '-' || spec.grouping != 0) fail("Unknown format code for object of type 'str'");
      if (spec.align == '=') {
        if (spec.fill != "0") fail("'=' alignment not allowed in string format specifier");
        spec.align = '<';
      }
      Text text = value.is_string() ? value.text() : Text(std::to_string(value.as_int()), true);
      if (spec.precision >= 0) text = text.slice(0, code_point_offset(text.view(), static_cast<size_t>(spec.precision)));
      return pad_text(heap, text, spec, value.is_string() ? '<' : '>', 0);
    }
    if (value.is_numeric()) return numeric(value, spec);
    fail("unsupported format string passed to " + std::string(type_name(value)) + ".__format__");
  }

  Text numeric(const Value& value, const FormatSpec& spec) {
    std::string body;
    const bool wants_float = spec.type != 0 && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
    const bool wants_integer = spec.type == 0 || std::string_view("dxXobn").find(spec.type) != std::string_view::npos;
    size_t prefix = 0;
    if (value.is(Kind::kDouble) || wants_float) {
      if (value.is(Kind::kDouble) && spec.type != 0 && !wants_float) fail("Unknown format code for object of type 'float'");
      body = format_double(value.as_double(), spec);
    } else if (spec.type == 'c') {
      if (value.as_int() < 0 || value.as_int() > 0x10FFFF) fail("%c arg not in range(0x110000)");
      append_utf8(static_cast<uint32_t>(value.as_int()), body);
    } else {
      if (!wants_integer) fail("Unknown format code for object of type 'int'");
      if (spec.precision >= 0) fail("Precision not allowed in integer format specifier");
      body = format_integer(value, spec);
      if (spec.is_alternate && (spec.type == 'x' || spec.type == 'X' || spec.type == 'o' || spec.type == 'b')) prefix = 2;
    }
    if (body[0] == '-' || body[0] == '+' || body[0] == ' ') ++prefix;
    return pad_text(in_.heap(), Text(std::move(body), true), spec, '>', prefix);
  }

  Interpreter& in_;
  const CallArguments& arguments_;
  size_t next_ = 0;
  char numbering_ = 0;
};

}  // namespace

Value brace_format(Interpreter& in, const Value& format, CallArguments& arguments) {
  in.budget().work(format.text().size() * 8);
  return in.heap().string(BraceFormatter(in, arguments).run(format.text(), 2), format.is_markup());
}

}  // namespace pagoda::jinja
