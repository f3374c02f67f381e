#pragma once
// Functions a template finds without being given them: range, dict, namespace, cycler, joiner, raise_exception,
// strftime_now.

#include <string>
#include <string_view>

namespace pagoda::jinja {

class Interpreter;
void add_globals(Interpreter& interpreter);

/// strftime of a UTC time in the C locale; `format` as Python passes it on to glibc. At most `max_bytes` long.
std::string format_time(std::string_view format, long long unix_seconds);

}  // namespace pagoda::jinja
