// Methods of str that give several strings, and join.

#include <algorithm>

#include "base/utf8.h"
#include "chat_template/arguments.h"
#include "chat_template/interpreter.h"
#include "chat_template/methods.h"
#include "chat_template/string_ops.h"
#include "chat_template/unicode.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

// Cuts a string into pieces and keeps their origin.
class Splitter {
 public:
  Splitter(Interpreter& in, const Value& value) : heap_(in.heap()), value_(value), bytes_(value.str()) {
    heap_.budget().work(bytes_.size() * 4);
  }
  Values pieces;

  void by_separator(const std::string& separator, uint64_t limit) {
    size_t from = 0;
    for (; limit > 0; --limit) {
      const size_t at = bytes_.find(separator, from);
      if (at == std::string_view::npos) break;
      take(from, at);
      from = at + separator.size();
    }
    take(from, bytes_.size());
  }

  void by_separator_from_right(const std::string& separator, uint64_t limit) {
    size_t end = bytes_.size();
    for (; limit > 0 && end >= separator.size(); --limit) {
      const size_t at = bytes_.rfind(separator, end - separator.size());
      if (at == std::string_view::npos) break;
      take(at + separator.size(), end);
      end = at;
    }
    take(0, end);
    std::reverse(pieces.begin(), pieces.end());
  }

  void by_space(uint64_t limit) {
    size_t at = skip_space(0);
    while (at < bytes_.size()) {
      if (limit-- == 0) {
        take(at, strip_range(bytes_, {.left = false, .right = true}).second);
        return;
      }
      size_t end = at;
      while (end < bytes_.size() && !space_at(end)) end += decode_utf8(bytes_.substr(end)).length;
      take(at, end);
      at = skip_space(end);
    }
  }

  void by_space_from_right(uint64_t limit) {
    size_t end = strip_range(bytes_, {.left = false, .right = true}).second;
    while (end > 0) {
      if (limit-- == 0) {
        take(skip_space(0), end);
        break;
      }
      size_t begin = end;
      while (begin > 0 && !space_at(previous(begin))) begin = previous(begin);
      take(begin, end);
      end = strip_range(bytes_.substr(0, begin), {.left = false, .right = true}).second;
    }
    std::reverse(pieces.begin(), pieces.end());
  }

 private:
  bool space_at(size_t at) const { return is_python_space(decode_utf8(bytes_.substr(at)).code_point); }
  size_t previous(size_t at) const {
    --at;
    while (at > 0 && (static_cast<unsigned char>(bytes_[at]) & 0xC0) == 0x80) --at;
    return at;
  }
  size_t skip_space(size_t at) const {
    while (at < bytes_.size() && space_at(at)) at += decode_utf8(bytes_.substr(at)).length;
    return at;
  }
  void take(size_t begin, size_t end) {
    heap_.budget().step();
    pieces.push_back(heap_.string(value_.text().slice(begin, end), value_.is_markup()));
  }

  const Heap& heap_;
  const Value& value_;
  std::string_view bytes_;
};

Value split_with(Interpreter& in, const Value& self, const char* name, const CallArguments& a, bool from_right) {
  const BoundArguments args(name, a, {"sep", "maxsplit"}, 0);
  const int64_t wanted = args.integer_or(1, -1);
  const uint64_t limit = wanted < 0 ? UINT64_MAX : static_cast<uint64_t>(wanted);
  Splitter splitter(in, self);
  if (args.is_absent(0)) {
    from_right ? splitter.by_space_from_right(limit) : splitter.by_space(limit);
  } else {
    const std::string& separator = args.text(0).bytes();
    if (separator.empty()) fail("empty separator");
    from_right ? splitter.by_separator_from_right(separator, limit) : splitter.by_separator(separator, limit);
  }
  return in.heap().list(std::move(splitter.pieces));
}
Value split(Interpreter& in, const Value& self, CallArguments& a) { return split_with(in, self, "split", a, false); }
Value rsplit(Interpreter& in, const Value& self, CallArguments& a) { return split_with(in, self, "rsplit", a, true); }

Value splitlines(Interpreter& in, const Value& self, CallArguments& a) {
  const BoundArguments args("splitlines", a, {"keepends"}, 0);
  return in.heap().list(split_lines(in.heap(), self, args.bool_or(0, false)));
}

Value partition_with(Interpreter& in, const Value& self, const char* name, const CallArguments& a, bool from_right) {
  const BoundArguments args(name, a, {"sep"}, 1);
  const std::string& separator = args.text(0).bytes();
  if (separator.empty()) fail("empty separator");
  const Text& text = self.text();
  in.budget().work(text.size());
  const size_t at = from_right ? text.bytes().rfind(separator) : text.bytes().find(separator);
  const Value empty = in.heap().string("");
  if (at == std::string::npos) return in.heap().tuple(from_right ? Values{empty, empty, self} : Values{self, empty, empty});
  const auto part = [&](size_t begin, size_t end) { return in.heap().string(text.slice(begin, end), self.is_markup()); };
  return in.heap().tuple({part(0, at), part(at, at + separator.size()), part(at + separator.size(), text.size())});
}
Value partition(Interpreter& in, const Value& self, CallArguments& a) { return partition_with(in, self, "partition", a, false); }
Value rpartition(Interpreter& in, const Value& self, CallArguments& a) { return partition_with(in, self, "rpartition", a, true); }

Value join(Interpreter& in, const Value& self, CallArguments& a) {
  const BoundArguments args("join", a, {"iterable"}, 1);
  TextBuilder out(in.heap());
  bool is_first = true;
  for (const Value& item : iterate(in.heap(), args[0])) {
    if (!item.is_string()) fail("sequence item: expected str instance, " + std::string(type_name(item)) + " found");
    if (!std::exchange(is_first, false)) out.append(self.text());
    out.append(self.is_markup() ? escape_value(in.heap(), item) : item.text());
  }
  return in.heap().string(out.take(), self.is_markup());
}

constexpr MethodEntry kMethods[] = {{"split", split},         {"rsplit", rsplit},         {"splitlines", splitlines},
                                    {"partition", partition}, {"rpartition", rpartition}, {"join", join}};

// True when the text is not empty and every character passes.
template <bool (*accept)(uint32_t)>
Value all_characters(Interpreter& in, const Value& self, CallArguments& a) {
  const BoundArguments args("str method", a, {}, 0);
  const std::string_view s = self.str();
  in.budget().work(s.size() * 8);
  for (size_t at = 0; at < s.size();) {
    const Utf8Char c = decode_utf8(s.substr(at));
    if (!accept(c.code_point)) return Value::boolean(false);
    at += c.length;
  }
  return Value::boolean(!s.empty());
}

Value is_cased(Interpreter& in, const Value& self, bool want_upper) {
  const std::string_view s = self.str();
  in.budget().work(s.size() * 8);
  bool found = false;
  for (size_t at = 0; at < s.size();) {
    const Utf8Char c = decode_utf8(s.substr(at));
    if (want_upper ? unicode::is_lower(c.code_point) : unicode::is_upper(c.code_point)) return Value::boolean(false);
    found |= want_upper ? unicode::is_upper(c.code_point) : unicode::is_lower(c.code_point);
    at += c.length;
  }
  return Value::boolean(found);
}
Value isupper(Interpreter& in, const Value& self, CallArguments&) { return is_cased(in, self, true); }
Value islower(Interpreter& in, const Value& self, CallArguments&) { return is_cased(in, self, false); }
Value isascii(Interpreter&, const Value& self, CallArguments&) { return Value::boolean(is_ascii(self.str())); }
Value isprintable(Interpreter& in, const Value& self, CallArguments& a) {
  return self.str().empty() ? Value::boolean(true) : all_characters<unicode::is_printable>(in, self, a);
}
bool is_identifier_part(uint32_t c) { return c == '_' || unicode::is_alnum(c); }
Value isidentifier(Interpreter& in, const Value& self, CallArguments& a) {
  const std::string& s = self.str();
  const bool starts_well = !s.empty() && (s[0] == '_' || unicode::is_alpha(decode_utf8(s).code_point));
  return starts_well ? all_characters<is_identifier_part>(in, self, a) : Value::boolean(false);
}
Value istitle(Interpreter& in, const Value& self, CallArguments&) {
  in.budget().work(self.str().size() * 16);
  const bool has_case = unicode::lower(self.str()) != unicode::upper(self.str());
  return Value::boolean(has_case && title_case(self.str()) == self.str());
}

constexpr MethodEntry kClassMethods[] = {{"isalpha", all_characters<unicode::is_alpha>},
                                         {"isalnum", all_characters<unicode::is_alnum>},
                                         {"isdigit", all_characters<unicode::is_digit>},
                                         {"isdecimal", all_characters<unicode::is_decimal>},
                                         {"isnumeric", all_characters<unicode::is_numeric>},
                                         {"isspace", all_characters<is_python_space>},
                                         {"isupper", isupper},
                                         {"islower", islower},
                                         {"istitle", istitle},
                                         {"isascii", isascii},
                                         {"isprintable", isprintable},
                                         {"isidentifier", isidentifier}};

}  // namespace

const MethodEntry* find_string_split_method(std::string_view name) {
  for (const MethodEntry& entry : kMethods) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

const MethodEntry* find_string_class_method(std::string_view name) {
  for (const MethodEntry& entry : kClassMethods) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace pagoda::jinja
