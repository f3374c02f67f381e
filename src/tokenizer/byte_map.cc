#include "tokenizer/byte_map.h"

#include <array>

#include "base/utf8.h"

namespace pagoda {
namespace {

constexpr uint32_t kFirstSubstitute = 0x100;
constexpr uint32_t kAlphabetEnd = kFirstSubstitute + 68;

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<uint32_t, 256> make_alphabet() {
  std::array<uint32_t, 256> alphabet{};
  uint32_t substitute = kFirstSubstitute;
  for (uint32_t byte = 0; byte < 256; ++byte) alphabet[byte] = stands_for_itself(byte) ? byte : substitute++;
  return alphabet;
}
constexpr std::array<uint32_t, 256> kAlphabet = make_alphabet();

constexpr std::array<int16_t, kAlphabetEnd> make_inverse() {
  std::array<int16_t, kAlphabetEnd> inverse{};
  for (auto& entry : inverse) entry = -1;
  for (size_t byte = 0; byte < 256; ++byte) inverse[kAlphabet[byte]] = static_cast<int16_t>(byte);
  return inverse;
}
constexpr std::array<int16_t, kAlphabetEnd> kInverse = make_inverse();

}  // namespace

uint32_t byte_to_alphabet(uint8_t byte) { return kAlphabet[byte]; }

bool append_alphabet_bytes(std::string_view token, std::string& out) {
  const size_t old_size = out.size();
  while (!token.empty()) {
    const Utf8Char c = decode_utf8(token);
    if (!c.valid || c.code_point >= kAlphabetEnd || kInverse[c.code_point] < 0) {
      out.resize(old_size);
      return false;
    }
    out.push_back(static_cast<char>(kInverse[c.code_point]));
    token.remove_prefix(c.length);
  }
  return true;
}

}  // namespace pagoda
