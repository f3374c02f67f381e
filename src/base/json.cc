#include "base/json.h"

#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cmath>
#include <unordered_set>

#include "base/utf8.h"

namespace pagoda {

namespace {

namespace bj = boost::json;

// Objects this small are scanned for duplicates in place; a hash set pays only above.
constexpr size_t kSmallObject = 16;

// SAX handler: Boost.JSON's own DOM drops duplicate keys silently, so the tree is built here.
struct Handler {
  static constexpr size_t max_object_size = size_t(-1);
  static constexpr size_t max_array_size = size_t(-1);
  static constexpr size_t max_key_size = size_t(-1);
  static constexpr size_t max_string_size = size_t(-1);

  std::vector<JsonValue> stack;
  std::vector<std::string> keys;
  std::string text;
  std::string error;

  bool push(JsonValue::Data data) {
    stack.emplace_back(std::move(data));
    return true;
  }
  bool on_document_begin(bj::error_code&) { return true; }
  bool on_document_end(bj::error_code&) { return true; }
  bool on_object_begin(bj::error_code&) { return true; }
  bool on_array_begin(bj::error_code&) { return true; }
  bool on_array_end(size_t n, bj::error_code&) {
    JsonArray items(std::make_move_iterator(stack.end() - n), std::make_move_iterator(stack.end()));
    stack.resize(stack.size() - n);
    return push(std::move(items));
  }
  bool on_object_end(size_t n, bj::error_code& ec) {
    JsonObject members;
    members.reserve(n);
    const size_t first_key = keys.size() - n;
    const size_t first_value = stack.size() - n;
    for (size_t i = 0; i < n; ++i) members.emplace_back(std::move(keys[first_key + i]), std::move(stack[first_value + i]));
    keys.resize(first_key);
    stack.resize(first_value);
    if (!unique_keys(members)) {
      ec = bj::error::extra_data;
      return false;
    }
    return push(std::move(members));
  }
  bool unique_keys(const JsonObject& members) {
    std::unordered_set<std::string_view> seen;
    for (size_t i = 0; i < members.size(); ++i) {
      bool fresh = true;
      if (members.size() <= kSmallObject) {
        for (size_t j = 0; j < i; ++j) fresh = fresh && members[j].first != members[i].first;
      } else {
        fresh = seen.insert(members[i].first).second;
      }
      if (!fresh) {
        error = "duplicate key " + json_quote(members[i].first);
        return false;
      }
    }
    return true;
  }
  bool on_string_part(bj::string_view s, size_t, bj::error_code&) {
    text.append(s.data(), s.size());
    return true;
  }
  bool on_string(bj::string_view s, size_t, bj::error_code&) {
    text.append(s.data(), s.size());
    return push(std::exchange(text, {}));
  }
  bool on_key_part(bj::string_view s, size_t n, bj::error_code& ec) { return on_string_part(s, n, ec); }
  bool on_key(bj::string_view s, size_t, bj::error_code&) {
    text.append(s.data(), s.size());
    keys.push_back(std::exchange(text, {}));
    return true;
  }
  bool on_number_part(bj::string_view, bj::error_code&) { return true; }
  bool on_int64(int64_t n, bj::string_view, bj::error_code&) { return push(n); }
  bool on_uint64(uint64_t n, bj::string_view, bj::error_code&) { return push(n); }
  bool on_double(double d, bj::string_view, bj::error_code&) { return push(d); }
  bool on_bool(bool b, bj::error_code&) { return push(b); }
  bool on_null(bj::error_code&) { return push(nullptr); }
  bool on_comment_part(bj::string_view, bj::error_code&) { return true; }
  bool on_comment(bj::string_view, bj::error_code&) { return true; }
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view key) const {
  if (const JsonObject* object = as_object()) {
    for (const auto& [name, value] : *object) {
      if (name == key) return &value;
    }
  }
  return nullptr;
}

std::optional<int64_t> JsonValue::as_int() const {
  if (const auto* n = std::get_if<int64_t>(&data_)) return *n;
  return std::nullopt;
}

std::optional<double> JsonValue::as_double() const {
  if (const auto* n = std::get_if<int64_t>(&data_)) return static_cast<double>(*n);
  if (const auto* n = std::get_if<uint64_t>(&data_)) return static_cast<double>(*n);
  if (const auto* d = std::get_if<double>(&data_)) return *d;
  return std::nullopt;
}

Result<JsonValue> parse_json(std::string_view text, const JsonLimits& limits) {
  bj::parse_options options;
  options.max_depth = limits.max_depth;
  bj::basic_parser<Handler> parser(options);
  bj::error_code ec;
  const size_t used = parser.write_some(false, text.data(), text.size(), ec);
  const Handler& handler = parser.handler();
  if (ec) {
    const std::string why = handler.error.empty() ? ec.message() : handler.error;
    return invalid_argument("JSON, byte " + std::to_string(used) + ": " + why);
  }
  if (used != text.size()) {
    return invalid_argument("JSON, byte " + std::to_string(used) + ": extra bytes after the value");
  }
  return std::move(parser.handler().stack.back());
}

void JsonWriter::separate() {
  if (need_comma_) out_ += ',';
  need_comma_ = true;
}

void JsonWriter::begin_object() {
  separate();
  out_ += '{';
  need_comma_ = false;
}
void JsonWriter::end_object() {
  out_ += '}';
  need_comma_ = true;
}
void JsonWriter::begin_array() {
  separate();
  out_ += '[';
  need_comma_ = false;
}
void JsonWriter::end_array() {
  out_ += ']';
  need_comma_ = true;
}
void JsonWriter::key(std::string_view name) {
  separate();
  out_ += json_quote(name);
  out_ += ':';
  need_comma_ = false;
}
void JsonWriter::value(std::string_view text) {
  separate();
  out_ += json_quote(text);
}
void JsonWriter::value(bool b) {
  separate();
  out_ += b ? "true" : "false";
}
void JsonWriter::value(int64_t n) {
  separate();
  out_ += std::to_string(n);
}
void JsonWriter::value(uint64_t n) {
  separate();
  out_ += std::to_string(n);
}

namespace {
template <typename F>
void append_number(F number, std::string& out) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
  out.append(buffer, end);
}
}  // namespace

void JsonWriter::value(double d) {
  separate();
  append_number(d, out_);
}
void JsonWriter::value(float f) {
  separate();
  append_number(f, out_);
}
void JsonWriter::null() {
  separate();
  out_ += "null";
}

std::string json_quote(std::string_view raw) {
  const std::string repaired = is_valid_utf8(raw) ? std::string() : repair_utf8(raw);
  const std::string_view text = repaired.empty() ? raw : std::string_view(repaired);
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += "\\u00";
          out += kHex[(c >> 4) & 15];
          out += kHex[c & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
  return out;
}

}  // namespace pagoda
