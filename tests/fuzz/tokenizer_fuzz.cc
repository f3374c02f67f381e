// A vocabulary and a text, both from the input: creating never crashes, and what was created encodes to ids of its
// own vocabulary, the stream decodes to valid UTF-8 that equals the whole decode.
//
// Layout: byte 0 picks the model, byte 1 the pre-tokenizer, byte 2 flags; then NUL-separated fields: the text, the
// merges ("left right", one a line), a charsmap, and from there on the tokens, each led by a type and a score byte.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "tokenizer/byte_map.h"
#include "tokenizer/pre_tokenizer_table.h"
#include "tokenizer/tokenizer.h"

namespace {

using namespace pagoda;

std::string_view take_field(std::string_view& rest, char separator) {
  const size_t end = rest.find(separator);
  const std::string_view field = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return field;
}

void add_alphabet(TokenizerSpec& spec) {
  for (int byte = 0; byte < 256; ++byte) {
    TokenEntry token;
    append_utf8(byte_to_alphabet(static_cast<uint8_t>(byte)), token.text);
    spec.tokens.push_back(std::move(token));
  }
}

TokenizerSpec read_spec(std::string_view head, std::string_view rest) {
  TokenizerSpec spec;
  const auto flags = static_cast<uint8_t>(head[2]);
  const auto rows = all_pre_tokenizers();
  const PreTokenizerRow& row = rows[static_cast<uint8_t>(head[1]) % rows.size()];
  spec.model = static_cast<TokenizerModel>(static_cast<uint8_t>(head[0]) % 4);
  spec.pre_tokenizer = row.name;
  spec.raw_characters = row.raw_characters;
  spec.normalizer.unicode = static_cast<NormalizerSpec::Unicode>(flags % 3);
  spec.normalizer.escape_spaces = (flags & 4) != 0;
  spec.normalizer.add_space_prefix = (flags & 8) != 0;
  spec.normalizer.remove_extra_spaces = (flags & 16) != 0;
  spec.normalizer.lowercase = spec.normalizer.strip_accents = spec.normalizer.clean_text = (flags & 32) != 0;
  spec.byte_fallback = spec.ignore_merges = (flags & 64) != 0;
  spec.continuation_prefix = "##";
  spec.unk_id = 0;
  if ((flags & 128) != 0) add_alphabet(spec);
  std::string_view merges = take_field(rest, '\0');
  while (!merges.empty()) spec.merges.emplace_back(take_field(merges, '\n'));
  spec.normalizer.precompiled_charsmap = take_field(rest, '\0');
  while (!rest.empty()) {
    const std::string_view field = take_field(rest, '\0');
    TokenEntry token;
    if (field.size() > 2) token.text = field.substr(2);
    if (!field.empty()) token.type = static_cast<TokenType>(1 + static_cast<uint8_t>(field[0]) % 6);
    if (field.size() > 1) token.score = -static_cast<float>(static_cast<uint8_t>(field[1]));
    spec.tokens.push_back(std::move(token));
  }
  return spec;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view head = rest.substr(0, 3);
  rest.remove_prefix(3);
  const std::string_view text = take_field(rest, '\0');
  const auto tokenizer = Tokenizer::create(read_spec(head, rest));
  if (!tokenizer.ok()) return 0;

  const TextSegment segments[] = {{std::string(text.substr(0, text.size() / 2)), true},
                                  {std::string(text.substr(text.size() / 2)), false}};
  const std::vector<TokenId> ids = (*tokenizer)->encode_segments(segments, {});
  Detokenizer detokenizer(**tokenizer, {.show_special = true, .strip_leading_space = true});
  std::string streamed;
  for (const TokenId id : ids) {
    PAGODA_CHECK(id >= 0 && id < (*tokenizer)->vocab_size());
    const std::string delta = detokenizer.push(id);
    PAGODA_CHECK(is_valid_utf8(delta));
    streamed += delta;
  }
  streamed += detokenizer.finish();
  PAGODA_CHECK(streamed == (*tokenizer)->decode(ids, true));
  // Untrusted text never gives a control token.
  for (const TokenId id : (*tokenizer)->encode(text, {.add_special = false, .parse_special = false})) {
    PAGODA_CHECK((*tokenizer)->spec().tokens[static_cast<size_t>(id)].type != TokenType::kControl ||
                 id == (*tokenizer)->spec().unk_id);
  }
  return 0;
}
