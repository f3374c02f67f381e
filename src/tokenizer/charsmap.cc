#include "tokenizer/charsmap.h"

#include <bit>
#include <cstring>
#include <optional>

#include "base/utf8.h"

namespace pagoda {
namespace {

// Real tables match a few characters and replace them by at most 18 (U+FDFA). The caps keep a hostile table from
// making a match cost, or grow the text by, more than a constant.
constexpr size_t kMaxKeyBytes = 256;
constexpr size_t kMaxReplacementBytes = 256;

// A unit of the double array: label in bits 0-7, "has a value" in bit 8, offset to the children in bits 10-30 (bit 9
// scales it by 256), bit 31 marks a unit that holds a value.
constexpr uint32_t kValueFlag = 1u << 31;
uint32_t children_offset(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }
uint32_t label(uint32_t unit) { return unit & (kValueFlag | 0xFFu); }
bool has_value(uint32_t unit) { return ((unit >> 8) & 1) != 0; }

}  // namespace

Result<Charsmap> Charsmap::create(std::string_view blob) {
  static_assert(std::endian::native == std::endian::little);
  Charsmap map;
  if (blob.empty()) return map;
  uint32_t trie_bytes = 0;
  if (blob.size() < sizeof(trie_bytes)) return data_loss("precompiled_charsmap: shorter than its size field");
  std::memcpy(&trie_bytes, blob.data(), sizeof(trie_bytes));
  blob.remove_prefix(sizeof(trie_bytes));
  if (trie_bytes % sizeof(uint32_t) != 0 || trie_bytes > blob.size()) {
    return data_loss("precompiled_charsmap: a trie of " + std::to_string(trie_bytes) + " bytes does not fit in " +
                     std::to_string(blob.size()));
  }
  map.units_.resize(trie_bytes / sizeof(uint32_t));
  if (trie_bytes > 0) std::memcpy(map.units_.data(), blob.data(), trie_bytes);
  map.replacements_ = blob.substr(trie_bytes);
  if (!map.replacements_.empty() && map.replacements_.back() != '\0') {
    return data_loss("precompiled_charsmap: the last replacement has no end");
  }
  return map;
}

Charsmap::Match Charsmap::longest_match(std::string_view text) const {
  std::optional<uint32_t> value;
  size_t length = 0;
  if (units_.empty()) return {};
  size_t node = children_offset(units_[0]);
  for (size_t i = 0; i < text.size() && i < kMaxKeyBytes; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || label(units_[node]) != byte) break;
    const bool ends_here = has_value(units_[node]);
    node ^= children_offset(units_[node]);
    if (node >= units_.size()) break;
    if (ends_here) {
      value = units_[node] & ~kValueFlag;
      length = i + 1;
    }
  }
  if (!value || *value >= replacements_.size()) return {};
  const std::string_view replacement(replacements_.c_str() + *value);
  // A table that cuts characters in two is broken: those entries do nothing.
  if (replacement.size() > kMaxReplacementBytes || !is_valid_utf8(replacement)) return {};
  if (!is_valid_utf8(text.substr(0, length))) return {};
  return {length, replacement};
}

std::string Charsmap::apply(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (const Match match = longest_match(text); match.length > 0) {
      out += match.replacement;
      text.remove_prefix(match.length);
      continue;
    }
    const size_t length = decode_utf8(text).length;
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace pagoda
