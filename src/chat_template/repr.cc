// str() and repr() as Python prints them.

#include <charconv>
#include <cmath>

#include "base/utf8.h"
#include "chat_template/interpreter.h"
#include "chat_template/unicode.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

// Collects printed text and checks its length as it grows, so that a value shared many times inside a list cannot
// print into more memory than one string may have.
class Printer {
 public:
  explicit Printer(const Heap& heap) : heap_(heap) {}
  Text take() { return Text(std::move(out_), is_trusted_); }

  void put(std::string_view s) {
    heap_.budget().check_string(out_.size() + s.size());
    if (out_.size() + s.size() > out_.capacity()) heap_.budget().check_memory(2 * (out_.size() + s.size()));
    out_ += s;
  }

  void repr(const Value& value) {
    heap_.budget().step();
    switch (value.kind()) {
      case Kind::kString: return quoted(value);
      case Kind::kList: return sequence(value.items(), "[", "]");
      case Kind::kTuple: return sequence(value.items(), "(", value.items().size() == 1 ? ",)" : ")");
      case Kind::kDict: return dict(value.dict());
      case Kind::kDictView: return view(value);
      case Kind::kNamespace: return name_space(value);
      case Kind::kUndefined: return put("Undefined");
      default: return put(scalar(value));
    }
  }

  std::string scalar(const Value& value) const {
    switch (value.kind()) {
      case Kind::kNone: return "None";
      case Kind::kBool: return value.as_bool() ? "True" : "False";
      case Kind::kInt:
      case Kind::kBigInt: return integer_text(value);
      case Kind::kDouble: return float_repr(value.as_double());
      case Kind::kRange: {
        const auto& r = value.object<RangeObject>();
        return "range(" + std::to_string(r.start) + ", " + std::to_string(r.stop) +
               (r.step == 1 ? ")" : ", " + std::to_string(r.step) + ")");
      }
      case Kind::kMacro: return "<Macro '" + value.object<MacroObject>().name() + "'>";
      case Kind::kFunction: return "<function " + std::string(value.object<FunctionObject>().name) + ">";
      case Kind::kLoop: return loop_repr(value);
      default: return "<" + std::string(type_name(value)) + " object>";
    }
  }

 private:
  void quoted(const Value& value) {
    is_trusted_ = is_trusted_ && value.text().is_trusted();
    const std::string& s = value.str();
    heap_.budget().work(s.size() * 4);
    if (value.is_markup()) put("Markup(");
    const bool has_single = s.find('\'') != std::string::npos;
    const char quote = has_single && s.find('"') == std::string::npos ? '"' : '\'';
    std::string text(1, quote);
    for (size_t at = 0; at < s.size();) {
      const Utf8Char c = decode_utf8(std::string_view(s).substr(at));
      append_escaped(c.code_point, std::string_view(s).substr(at, c.length), quote, text);
      at += c.length;
    }
    put(text + quote);
    if (value.is_markup()) put(")");
  }

  static void append_escaped(uint32_t c, std::string_view bytes, char quote, std::string& text) {
    const auto hex = [&text](char prefix, uint32_t v, int digits) {
      text += '\\';
      text += prefix;
      for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) text += "0123456789abcdef"[(v >> shift) & 15];
    };
    if (c == '\\' || c == static_cast<uint32_t>(quote)) {
      text += '\\';
      text += static_cast<char>(c);
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '\r') {
      text += "\\r";
    } else if (c == '\t') {
      text += "\\t";
    } else if (unicode::is_printable(c)) {
      text += bytes;
    } else if (c < 0x100) {
      hex('x', c, 2);
    } else if (c < 0x10000) {
      hex('u', c, 4);
    } else {
      hex('U', c, 8);
    }
  }

  void sequence(const Values& items, std::string_view open, std::string_view close) {
    put(open);
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) put(", ");
      repr(items[i]);
    }
    put(close);
  }

  void dict(const DictObject& object) {
    put("{");
    bool first = true;
    for (const auto& [key, value] : object.entries()) {
      if (!first) put(", ");
      first = false;
      repr(key);
      put(": ");
      repr(value);
    }
    put("}");
  }

  void view(const Value& value) {
    const DictPart part = value.object<DictViewObject>().part;
    put(part == DictPart::kKeys ? "dict_keys(" : part == DictPart::kValues ? "dict_values(" : "dict_items(");
    sequence(iterate(heap_, value), "[", "])");
  }

  // The one value that can hold itself.
  void name_space(const Value& value) {
    if (++namespace_depth_ > 20) fail("maximum recursion depth exceeded while printing a namespace");
    put("<Namespace {");
    bool first = true;
    for (const auto& [name, item] : value.object<NamespaceObject>().attributes) {
      if (!first) put(", ");
      first = false;
      quoted(heap_.string(name));
      put(": ");
      repr(item);
    }
    put("}>");
    --namespace_depth_;
  }

  static std::string loop_repr(const Value& value) {
    const auto& loop = value.object<LoopObject>();
    return "<LoopContext " + std::to_string(loop.index0 + 1) + "/" + std::to_string(loop.known_length()) + ">";
  }

  const Heap& heap_;
  std::string out_;
  bool is_trusted_ = true;
  int namespace_depth_ = 0;
};

}  // namespace

std::string integer_text(const Value& value) {
  return value.is(Kind::kBigInt) ? std::to_string(value.as_big()) : std::to_string(value.as_int());
}

std::string float_repr(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), d, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<size_t>(result.ptr - buffer));
  const size_t e = text.find('e');
  int exponent = 0;
  const size_t digits_from = e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(text.data() + digits_from, text.data() + text.size(), exponent);
  if (exponent >= 16 || exponent < -4) {
    std::string out(text.substr(0, e));
    const int magnitude = exponent < 0 ? -exponent : exponent;
    out += exponent < 0 ? "e-" : "e+";
    return out + (magnitude < 10 ? "0" : "") + std::to_string(magnitude);
  }
  const auto fixed = std::to_chars(buffer, buffer + sizeof(buffer), d, std::chars_format::fixed);
  std::string out(buffer, fixed.ptr);
  return out.find('.') == std::string::npos ? out + ".0" : out;
}

Text to_text(const Heap& heap, const Value& value) {
  if (value.is_string()) return value.text();
  if (value.is_undefined()) return Text();
  return to_repr(heap, value);
}

Text to_repr(const Heap& heap, const Value& value) {
  Printer printer(heap);
  printer.repr(value);
  return printer.take();
}

Text escape_html(const Heap& heap, const Text& text) {
  heap.budget().work(text.size() * 4);
  std::string out;
  for (const char c : text.bytes()) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '\'') out += "&#39;";
    else if (c == '"') out += "&#34;";
    else out += c;
  }
  heap.budget().check_string(out.size());
  return Text(std::move(out), text.is_trusted());
}

Text escape_value(const Heap& heap, const Value& value) {
  return value.is_markup() ? value.text() : escape_html(heap, to_text(heap, value));
}

}  // namespace pagoda::jinja
