#pragma once
// The byte alphabet of byte-level BPE vocabularies: every byte is written as one printable character. Printable
// Latin-1 bytes stand for themselves; the other 68 are U+0100, U+0101, ... in byte order (space is U+0120).

#include <cstdint>
#include <string>
#include <string_view>

namespace pagoda {

/// The character that stands for `byte`.
uint32_t byte_to_alphabet(uint8_t byte);
/// Appends the bytes that `token` stands for; false (nothing appended) when it holds a character of no byte.
bool append_alphabet_bytes(std::string_view token, std::string& out);

}  // namespace pagoda
