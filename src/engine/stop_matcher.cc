#include "engine/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace pagoda {

StopMatcher::StopMatcher(std::span<const std::string> stops) {
  patterns_.reserve(stops.size());
  for (const std::string& stop : stops) patterns_.push_back(make_pattern(stop));
}

StopMatcher::Pattern StopMatcher::make_pattern(const std::string& stop) {
  PAGODA_CHECK(!stop.empty());
  Pattern pattern{stop, std::vector<uint32_t>(stop.size(), 0)};
  size_t length = 0;
  for (size_t i = 1; i < stop.size(); ++i) {
    while (length > 0 && stop[i] != stop[length]) length = pattern.border[length - 1];
    if (stop[i] == stop[length]) ++length;
    pattern.border[i] = static_cast<uint32_t>(length);
  }
  return pattern;
}

void StopMatcher::advance(Pattern& pattern, char byte) {
  while (pattern.state > 0 && pattern.text[pattern.state] != byte) pattern.state = pattern.border[pattern.state - 1];
  if (pattern.text[pattern.state] == byte) ++pattern.state;
}

// Length of the longest stop string that ends with this byte; 0: none.
size_t StopMatcher::match_length(char byte) {
  size_t longest = 0;
  for (Pattern& pattern : patterns_) {
    advance(pattern, byte);
    if (pattern.state == pattern.text.size()) longest = std::max(longest, pattern.state);
  }
  return longest;
}

size_t StopMatcher::held_length() const {
  size_t longest = 0;
  for (const Pattern& pattern : patterns_) longest = std::max(longest, pattern.state);
  return longest;
}

std::string StopMatcher::push(std::string_view text) {
  if (is_stopped_) return {};
  if (patterns_.empty()) return std::string(text);
  std::string final_text = std::exchange(held_, {});
  for (const char byte : text) {
    final_text.push_back(byte);
    const size_t length = match_length(byte);
    if (length == 0) continue;
    is_stopped_ = true;
    final_text.resize(final_text.size() - length);
    return final_text;
  }
  const size_t cut = final_text.size() - held_length();
  held_ = final_text.substr(cut);
  final_text.resize(cut);
  return final_text;
}

std::string StopMatcher::finish() {
  return std::exchange(held_, {});
}

}  // namespace pagoda
