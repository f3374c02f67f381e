#pragma once
// Python's conversions between text and numbers, and round().

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "chat_template/value.h"

namespace pagoda::jinja {

/// int(text, base); absent when Python raises ValueError. Fails when the number does not fit 64 bits.
std::optional<int64_t> parse_python_int(std::string_view text, int64_t base);
/// float(text); absent when Python raises ValueError.
std::optional<double> parse_python_float(std::string_view text);
/// int(d), or `fallback` for inf and NaN. Fails when the number does not fit 64 bits.
Value double_to_integer(double d, const Value& fallback);
/// The round filter: method is common, ceil or floor.
Value round_number(const Value& value, int64_t precision, const std::string& method);

}  // namespace pagoda::jinja
