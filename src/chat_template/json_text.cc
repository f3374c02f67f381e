#include "chat_template/json_text.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "chat_template/merge_sort.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

class JsonPrinter {
 public:
  JsonPrinter(const Heap& heap, const JsonStyle& style) : heap_(heap), style_(style) {}
  Text take() { return Text(std::move(out_), is_trusted_); }

  void print(const Value& value) {
    heap_.budget().step();
    switch (value.kind()) {
      case Kind::kNone: return put("null");
      case Kind::kBool: return put(value.as_bool() ? "true" : "false");
      case Kind::kInt:
      case Kind::kBigInt: return put(integer_text(value));
      case Kind::kDouble: return put(number(value.as_double()));
      case Kind::kString:
        is_trusted_ = is_trusted_ && value.text().is_trusted();
        return quoted(value.str());
      case Kind::kList:
      case Kind::kTuple: return list(value.items());
      case Kind::kDict: return dict(value.dict());
      case Kind::kUndefined: fail("Object of type Undefined is not JSON serializable");
      default: fail("Object of type " + std::string(type_name(value)) + " is not JSON serializable");
    }
  }

 private:
  void put(std::string_view s) {
    heap_.budget().check_string(out_.size() + s.size());
    if (out_.size() + s.size() > out_.capacity()) heap_.budget().check_memory(2 * (out_.size() + s.size()));
    out_ += s;
  }

  static std::string number(double d) {
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
    return float_repr(d);
  }

  void quoted(std::string_view s) {
    heap_.budget().work(s.size() * 4);
    std::string text = "\"";
    for (size_t at = 0; at < s.size();) {
      const Utf8Char c = decode_utf8(s.substr(at));
      escape(c.code_point, s.substr(at, c.length), text);
      at += c.length;
    }
    put(text + '"');
  }

  void escape(uint32_t c, std::string_view bytes, std::string& text) const {
    constexpr std::string_view kFrom = "\"\\\n\r\t\f\b";
    constexpr std::string_view kTo = "\"\\nrtfb";
    if (c < 0x80 && kFrom.find(static_cast<char>(c)) != std::string_view::npos) {
      text += '\\';
      text += kTo[kFrom.find(static_cast<char>(c))];
    } else if (c < 0x20 || (style_.ensure_ascii && c > 0x7E && c < 0x10000)) {
      unit(c, text);
    } else if (style_.ensure_ascii && c >= 0x10000) {
      unit(0xD800 + ((c - 0x10000) >> 10), text);
      unit(0xDC00 + ((c - 0x10000) & 0x3FF), text);
    } else {
      text += bytes;
    }
  }

  static void unit(uint32_t c, std::string& text) {
    text += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) text += "0123456789abcdef"[(c >> shift) & 15];
  }

  void new_line() {
    put("\n");
    heap_.budget().steps(level_);
    for (uint32_t i = 0; i < level_; ++i) put(*style_.indent);
  }

  // Runs `item(i)` for each of `count` items with separators and lines between `open` and `close`.
  template <typename Item>
  void group(std::string_view open, std::string_view close, size_t count, Item item) {
    put(open);
    ++level_;
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) put(style_.item_separator);
      if (style_.indent) new_line();
      item(i);
    }
    --level_;
    if (style_.indent && count > 0) new_line();
    put(close);
  }

  void list(const Values& items) {
    group("[", "]", items.size(), [&](size_t i) { print(items[i]); });
  }

  void dict(const DictObject& object) {
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : object.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      heap_.budget().steps(entries.size() * 4);
      merge_sort(entries,
                       [](const auto* a, const auto* b) { return ordered(a->first, b->first, "<"); });
    }
    group("{", "}", entries.size(), [&](size_t i) {
      key(entries[i]->first);
      put(style_.key_separator);
      print(entries[i]->second);
    });
  }

  void key(const Value& value) {
    switch (value.kind()) {
      case Kind::kString:
        is_trusted_ = is_trusted_ && value.text().is_trusted();
        return quoted(value.str());
      case Kind::kNone: return quoted("null");
      case Kind::kBool: return quoted(value.as_bool() ? "true" : "false");
      case Kind::kInt:
      case Kind::kBigInt: return quoted(integer_text(value));
      case Kind::kDouble: return quoted(number(value.as_double()));
      default: fail("keys must be str, int, float, bool or None, not " + std::string(type_name(value)));
    }
  }

  const Heap& heap_;
  const JsonStyle& style_;
  std::string out_;
  bool is_trusted_ = true;
  uint32_t level_ = 0;
};

}  // namespace

Text to_json_text(const Heap& heap, const Value& value, const JsonStyle& style) {
  JsonPrinter printer(heap, style);
  printer.print(value);
  return printer.take();
}

}  // namespace pagoda::jinja
