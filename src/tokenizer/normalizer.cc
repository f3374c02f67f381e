#include "tokenizer/normalizer.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>

#include <algorithm>

#include "base/check.h"

namespace pagoda {
namespace {

constexpr std::string_view kEscapedSpace = "\xE2\x96\x81";

// NFC and NFKC leave ASCII as it is.
bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

std::string apply(const icu::Normalizer2* (*instance)(UErrorCode&), std::string_view text) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* normalizer = instance(error);
  PAGODA_CHECK(U_SUCCESS(error));  // the tables are part of ICU itself
  std::string out;
  // ICU counts in int32: normalise in parts, cut where no character combines across.
  constexpr size_t kPartBytes = size_t{1} << 30;
  while (!text.empty()) {
    size_t length = text.size();
    if (length > kPartBytes) {
      length = kPartBytes;
      while (length > 1 && static_cast<uint8_t>(text[length]) >= 0x80) --length;
    }
    icu::StringByteSink<std::string> sink(&out);
    normalizer->normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<int32_t>(length)), sink, nullptr, error);
    PAGODA_CHECK(U_SUCCESS(error));
    text.remove_prefix(length);
  }
  return out;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  size_t begin = 0;
  for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from, begin)) {
    out.append(text.substr(begin, at - begin)).append(to);
    begin = at + from.size();
  }
  out.append(text.substr(begin));
  return out;
}

}  // namespace

std::string escape_spaces(std::string_view text) { return replace_all(text, " ", kEscapedSpace); }
std::string unescape_spaces(std::string_view text) { return replace_all(text, kEscapedSpace, " "); }

std::string decompose(std::string_view text) {
  return is_ascii(text) ? std::string(text) : apply(&icu::Normalizer2::getNFDInstance, text);
}

std::string remove_extra_spaces(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == ' ' && (out.empty() || out.back() == ' ')) continue;
    out += c;
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::string normalize_text(const NormalizerSpec& spec, std::string_view text) {
  std::string out;
  if (spec.unicode == NormalizerSpec::Unicode::kNone || is_ascii(text)) {
    out = text;
  } else {
    const bool is_nfc = spec.unicode == NormalizerSpec::Unicode::kNfc;
    out = apply(is_nfc ? &icu::Normalizer2::getNFCInstance : &icu::Normalizer2::getNFKCInstance, text);
  }
  return spec.escape_spaces ? escape_spaces(out) : out;
}

}  // namespace pagoda
