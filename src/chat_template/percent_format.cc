#include "chat_template/percent_format.h"

#include <cmath>

#include "base/utf8.h"
#include "chat_template/string_ops.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

// Widths above this are refused before anything is padded.
constexpr int64_t kMaxWidth = 1 << 24;

class PercentFormatter {
 public:
  PercentFormatter(const Heap& heap, const Value& format, const Value& arguments)
      : heap_(heap), format_(format.text()), is_markup_(format.is_markup()), arguments_(arguments), out_(heap) {}

  Text run() {
    const std::string& s = format_.bytes();
    while (at_ < s.size()) {
      const size_t percent = std::min(s.find('%', at_), s.size());
      out_.append(format_.slice(at_, percent));
      at_ = percent;
      if (at_ < s.size()) conversion();
    }
    const bool is_tuple = arguments_.is(Kind::kTuple);
    const size_t given = is_tuple ? arguments_.items().size() : 1;
    const bool may_be_left = !is_tuple && (arguments_.is(Kind::kDict) || arguments_.is(Kind::kList));
    if (next_ < given && !used_names_ && !may_be_left) fail("not all arguments converted during string formatting");
    return out_.take();
  }

 private:
  char peek() const {
    if (at_ >= format_.size()) fail("incomplete format");
    return format_.bytes()[at_];
  }

  const Value& next_argument() {
    if (named_ != nullptr) return *named_;
    if (arguments_.is(Kind::kTuple)) {
      if (next_ >= arguments_.items().size()) fail("not enough arguments for format string");
      return arguments_.items()[next_++];
    }
    if (next_++ > 0) fail("not enough arguments for format string");
    return arguments_;
  }

  int64_t number() {
    if (peek() == '*') {
      ++at_;
      const Value& v = next_argument();
      if (!v.is_integral()) fail("* wants int");
      return v.as_int();
    }
    int64_t value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = value * 10 + (format_.bytes()[at_++] - '0');
      if (value > kMaxWidth) fail_limit("a format width or precision is too big");
    }
    return value;
  }

  void name() {
    named_ = nullptr;
    if (peek() != '(') return;
    const size_t begin = ++at_;
    int depth = 1;
    while (depth > 0) {
      const char c = peek();
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      ++at_;
    }
    const Text key = format_.slice(begin, at_ - 1);
    if (!arguments_.is(Kind::kDict)) fail("format requires a mapping");
    named_ = arguments_.dict().find(key.view());
    if (named_ == nullptr) fail("the format names '" + key.bytes().substr(0, 100) + "', which was not given");
    used_names_ = true;
  }

  void conversion() {
    ++at_;
    name();
    FormatSpec spec;
    bool pads_zero = false;
    while (std::string_view("-+ #0").find(peek()) != std::string_view::npos) {
      const char flag = format_.bytes()[at_++];
      if (flag == '-') spec.align = '<';
      if (flag == '+' || (flag == ' ' && spec.sign != '+')) spec.sign = flag;
      if (flag == '#') spec.is_alternate = true;
      if (flag == '0') pads_zero = true;
    }
    spec.width = number();
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = spec.width < -kMaxWidth ? kMaxWidth + 1 : -spec.width;
    }
    if (spec.width > kMaxWidth) fail_limit("a format width is too big");
    if (peek() == '.') {
      ++at_;
      spec.precision = std::max<int64_t>(0, number());
    }
    while (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    spec.type = peek();
    ++at_;
    if (spec.type == '%') {
      out_.append(Text("%", true));
      return;
    }
    const Text body = convert(spec, next_argument());
    const bool is_number = std::string_view("diuxXoeEfFgG").find(spec.type) != std::string_view::npos;
    if (pads_zero && is_number && spec.align != '<') {
      spec.fill = "0";
      spec.align = '=';
    }
    size_t prefix = 0;
    if (!body.empty() && (body.bytes()[0] == '-' || body.bytes()[0] == '+' || body.bytes()[0] == ' ')) prefix = 1;
    if (spec.is_alternate && std::string_view("xXo").find(spec.type) != std::string_view::npos) prefix += 2;
    out_.append(pad_text(heap_, body, spec, '>', is_number ? prefix : 0));
  }

  Text convert(FormatSpec& spec, const Value& value) {
    switch (spec.type) {
      case 's': return cut(is_markup_ ? escape_value(heap_, value) : to_text(heap_, value), spec);
      case 'r':
      case 'a': return cut(to_repr(heap_, value), spec);
      case 'c': return character(value);
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o': return Text(integer(value, spec), true);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        require_defined(value);
        if (!value.is_numeric()) fail("must be real number, not " + std::string(type_name(value)));
        return Text(format_double(value.as_double(), spec), true);
      default: fail(std::string("unsupported format character '") + spec.type + "'");
    }
  }

  static std::string integer(const Value& value, const FormatSpec& spec) {
    require_defined(value);
    const bool is_decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
    if (value.is(Kind::kDouble) && is_decimal) {
      const double d = value.as_double();
      if (!std::isfinite(d) || std::fabs(d) >= 9223372036854775808.0) fail("a number does not fit a 64-bit integer");
      return format_integer(Value::integer(static_cast<int64_t>(d)), spec);
    }
    if (!value.is_integral() && !value.is(Kind::kBigInt)) {
      fail(std::string("%") + spec.type + " format: a number is required, not " + std::string(type_name(value)));
    }
    return format_integer(value, spec);
  }

  Text character(const Value& value) const {
    if (value.is_string() && length_of(value) == 1) return value.text();
    if (!value.is_integral() || value.as_int() < 0 || value.as_int() > 0x10FFFF) fail("%c requires int or char");
    std::string out;
    append_utf8(static_cast<uint32_t>(value.as_int()), out);
    return Text(std::move(out), true);
  }

  static Text cut(Text text, const FormatSpec& spec) {
    if (spec.precision < 0) return text;
    return text.slice(0, code_point_offset(text.view(), static_cast<size_t>(spec.precision)));
  }

  const Heap& heap_;
  const Text& format_;
  bool is_markup_;
  const Value& arguments_;
  TextBuilder out_;
  size_t at_ = 0;
  size_t next_ = 0;
  const Value* named_ = nullptr;
  bool used_names_ = false;
};

}  // namespace

Value percent_format(const Heap& heap, const Value& format, const Value& arguments) {
  heap.budget().work(format.text().size() * 4);
  return heap.string(PercentFormatter(heap, format, arguments).run(), format.is_markup());
}

}  // namespace pagoda::jinja
