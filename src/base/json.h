#pragma once
// JSON in and out. JsonValue keeps object members in file order and integers apart from doubles, as templates and
// tools need; JsonWriter writes numbers that read back to the same value.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "pagoda/status.h"

namespace pagoda {

class JsonValue;
using JsonArray = std::vector<JsonValue>;
using JsonObject = std::vector<std::pair<std::string, JsonValue>>;

class JsonValue {
 public:
  using Data = std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, JsonArray, JsonObject>;

  JsonValue() : data_(nullptr) {}
  explicit JsonValue(Data data) : data_(std::move(data)) {}

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_string() const { return std::holds_alternative<std::string>(data_); }
  bool is_array() const { return std::holds_alternative<JsonArray>(data_); }
  bool is_object() const { return std::holds_alternative<JsonObject>(data_); }
  const std::string* as_string() const { return std::get_if<std::string>(&data_); }
  const JsonArray* as_array() const { return std::get_if<JsonArray>(&data_); }
  const JsonObject* as_object() const { return std::get_if<JsonObject>(&data_); }
  const Data& data() const { return data_; }

  /// Member of an object by name, or null (also when this is no object).
  const JsonValue* find(std::string_view key) const;
  /// The value as an integer when it is one and fits.
  std::optional<int64_t> as_int() const;
  std::optional<double> as_double() const;

 private:
  Data data_;
};

struct JsonLimits {
  size_t max_depth = 64;
};

/// Parses exactly one JSON text. Duplicate keys, trailing bytes, invalid UTF-8 and too deep nesting are refused with
/// the byte offset.
Result<JsonValue> parse_json(std::string_view text, const JsonLimits& limits = {});

/// Streaming writer. Strings that are not valid UTF-8 get U+FFFD for each broken sequence, so output is always JSON.
/// Non-finite doubles are written as null.
class JsonWriter {
 public:
  void begin_object();
  void end_object();
  void begin_array();
  void end_array();
  void key(std::string_view name);
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(bool b);
  void value(int64_t n);
  void value(uint64_t n);
  void value(int n) { value(static_cast<int64_t>(n)); }
  void value(double d);  ///< shortest text that reads back to the same double
  void value(float f);   ///< shortest text that reads back to the same float
  void null();
  /// key(name) and value(v) in one call.
  template <typename T>
  void field(std::string_view name, const T& v) {
    key(name);
    value(v);
  }
  const std::string& text() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  void separate();
  std::string out_;
  bool need_comma_ = false;
};

/// `text` with quotes, as JSON.
std::string json_quote(std::string_view text);

}  // namespace pagoda
