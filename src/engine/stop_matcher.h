#pragma once
// StopMatcher: cuts a stream of text at the first stop string and holds back only what could still become one.
//
// Which match is first: the one whose last byte comes first; of several that end there, the longest. So the cut depends
// on the text alone, never on how it was split into tokens. The stop string and all that follows it are dropped.
//
// Thread rule: one stream, one thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda {

class StopMatcher {
 public:
  /// `stops`: none empty, all valid UTF-8 (so that a cut never splits a character of the text).
  explicit StopMatcher(std::span<const std::string> stops);

  /// The text that became final: all of it but the longest suffix that is a proper prefix of a stop string. Nothing
  /// once stopped.
  std::string push(std::string_view text);
  /// The text still held, at the end of the stream; nothing when stopped.
  std::string finish();
  bool is_stopped() const { return is_stopped_; }

 private:
  /// Knuth-Morris-Pratt: `state` bytes of `text` are the longest prefix that the stream ends with.
  struct Pattern {
    std::string text;
    std::vector<uint32_t> border;  // [i]: longest proper prefix of text[0..i] that is also its suffix
    size_t state = 0;
  };

  static Pattern make_pattern(const std::string& stop);
  static void advance(Pattern& pattern, char byte);
  size_t match_length(char byte);
  size_t held_length() const;

  std::vector<Pattern> patterns_;
  std::string held_;
  bool is_stopped_ = false;
};

}  // namespace pagoda
