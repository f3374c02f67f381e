#pragma once
// Python's character classes and case mappings (simple and full, without the context rule for final sigma).

#include <cstdint>
#include <string>
#include <string_view>

namespace pagoda::jinja::unicode {

bool is_alpha(uint32_t c);
bool is_numeric(uint32_t c);
bool is_decimal(uint32_t c);
bool is_digit(uint32_t c);
bool is_alnum(uint32_t c);
bool is_printable(uint32_t c);
bool is_lower(uint32_t c);
bool is_upper(uint32_t c);
void append_lower(uint32_t c, std::string& out);
void append_upper(uint32_t c, std::string& out);
void append_title(uint32_t c, std::string& out);

std::string lower(std::string_view text);
std::string upper(std::string_view text);
/// First character in title case, the rest in lower case.
std::string capitalize(std::string_view text);

}  // namespace pagoda::jinja::unicode
