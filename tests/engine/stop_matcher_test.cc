#include "engine/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace pagoda {
namespace {

using Texts = std::vector<std::string>;

struct Outcome {
  Texts deltas;  // one a piece, then what finish() gave
  std::string text;
  bool is_stopped = false;
};

Outcome stream(const Texts& stops, const Texts& pieces) {
  StopMatcher matcher(stops);
  Outcome outcome;
  for (const std::string& piece : pieces) outcome.deltas.push_back(matcher.push(piece));
  outcome.deltas.push_back(matcher.finish());
  for (const std::string& delta : outcome.deltas) outcome.text += delta;
  outcome.is_stopped = matcher.is_stopped();
  return outcome;
}

/// The text cut at the first match, by trying every end: the definition, slowly.
std::pair<std::string, bool> cut(const Texts& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

/// Longest suffix of the text that is a proper prefix of a stop string.
size_t slow_held(const Texts& stops, const std::string& text) {
  for (size_t length = text.size(); length > 0; --length) {
    for (const std::string& stop : stops) {
      if (length < stop.size() && text.ends_with(stop.substr(0, length))) return length;
    }
  }
  return 0;
}

TEST(StopMatcher, B24NothingOfAStopStringIsStreamedBeforeItIsRuledOut) {
  const Texts pieces{"DEF", "G", "HI", "J", "K"};
  const Outcome match = stream({"DEFGHIJ"}, pieces);
  EXPECT_TRUE(match.is_stopped);
  EXPECT_EQ(match.deltas, (Texts{"", "", "", "", "", ""}));
  const Outcome other = stream({"DEFGX"}, pieces);
  EXPECT_FALSE(other.is_stopped);
  EXPECT_EQ(other.deltas, (Texts{"", "", "DEFGHI", "J", "K", ""}));
}

TEST(StopMatcher, B26OnlyAProperPrefixOfAStopIsHeld) {
  const Outcome comma = stream({"b,c"}, {"a", ",", "b", ",", "c"});
  EXPECT_EQ(comma.deltas, (Texts{"a", ",", "", "", "", ""}));
  EXPECT_TRUE(comma.is_stopped);
  const Outcome hello = stream({std::string(20, 'z')}, {"h", "e", "l", "l", "o"});
  EXPECT_EQ(hello.deltas, (Texts{"h", "e", "l", "l", "o", ""}));
  EXPECT_FALSE(hello.is_stopped);
}

TEST(StopMatcher, B26TextAfterTheStopInTheSameTokenIsDropped) {
  const Outcome outcome = stream({"stop"}, {"do not ", "stop!", " never"});
  EXPECT_EQ(outcome.text, "do not ");
  EXPECT_TRUE(outcome.is_stopped);
  EXPECT_EQ(stream({"stop"}, {"stop!"}).text, "");
}

TEST(StopMatcher, AnUnfinishedPrefixComesOutAtTheEnd) {
  const Outcome outcome = stream({"</end>"}, {"text</en"});
  EXPECT_EQ(outcome.deltas, (Texts{"text", "</en"}));
  EXPECT_FALSE(outcome.is_stopped);
}

TEST(StopMatcher, OverlappingPrefixesAreNotLost) {
  EXPECT_EQ(stream({"aab"}, {"aaab"}).text, "a");
  EXPECT_EQ(stream({"abab"}, {"a", "b", "a", "a", "b", "a", "b"}).text, "aba");
  EXPECT_EQ(stream({"aaa"}, {"aa", "b", "aaa"}).text, "aab");
}

TEST(StopMatcher, TheMatchThatEndsFirstWinsAndTheLongestOfThose) {
  EXPECT_EQ(stream({"abcd", "bc"}, {"xabcd"}).text, "xa");
  EXPECT_EQ(stream({"c", "abc"}, {"xabcd"}).text, "x");
  EXPECT_EQ(stream({"abc", "c"}, {"xabcd"}).text, "x");
}

TEST(StopMatcher, WithoutStopsTextPassesThrough) {
  EXPECT_EQ(stream({}, {"a", "", "b"}).deltas, (Texts{"a", "", "b", ""}));
}

TEST(StopMatcher, AStopInsideCharactersOfSeveralBytes) {
  EXPECT_EQ(stream({"é中"}, {"caf", "é", "中", "!"}).deltas, (Texts{"caf", "", "", "", ""}));
  EXPECT_EQ(stream({"é中"}, {"caf", "é", "文"}).deltas, (Texts{"caf", "", "é文", ""}));
}

// B24's rule for every tokenisation of the same string: few letters, so that prefixes and overlaps abound.
TEST(StopMatcher, B24EverySplitGivesTheTextCutAtTheFirstMatch) {
  std::mt19937 rng(1);
  const auto random_text = [&](size_t length) {
    std::string text;
    for (size_t i = 0; i < length; ++i) text.push_back(static_cast<char>('a' + rng() % 2));
    return text;
  };
  int num_stopped = 0;
  for (int round = 0; round < 3000; ++round) {
    Texts stops;
    for (size_t i = 0; i < 1 + rng() % 4; ++i) stops.push_back(random_text(1 + rng() % 7));
    const std::string text = random_text(rng() % 30);
    const auto [expected, is_stopped] = cut(stops, text);
    num_stopped += is_stopped;
    for (int split = 0; split < 4; ++split) {
      StopMatcher matcher(stops);
      std::string streamed;
      for (size_t at = 0; at < text.size();) {
        const size_t length = split == 0 ? 1 : split == 1 ? text.size() : rng() % 5;
        streamed += matcher.push(text.substr(at, length));
        at = std::min(at + length, text.size());
        if (matcher.is_stopped()) continue;
        ASSERT_EQ(streamed.size(), at - slow_held(stops, text.substr(0, at))) << "holds back more or less than it must";
      }
      streamed += matcher.finish();
      ASSERT_EQ(streamed, expected) << text;
      ASSERT_EQ(matcher.is_stopped(), is_stopped) << text;
    }
  }
  EXPECT_GT(num_stopped, 500);
  EXPECT_LT(num_stopped, 2999);
}

}  // namespace
}  // namespace pagoda
