#pragma once
// The library's only way to tell a person something: it never prints by itself. The program sets the sink.

#include <string_view>

namespace pagoda {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// Writes one line to standard error at or above the configured level. Safe from any thread.
void log_message(LogLevel level, std::string_view message);
/// Below `level` nothing is written. Default kWarning.
void set_log_level(LogLevel level);

}  // namespace pagoda
