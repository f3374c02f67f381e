#include "tokenizer/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <limits>
#include <new>
#include <string>

#include "base/check.h"
#include "base/log.h"
#include "tokenizer/unicode_class.h"

namespace pagoda {
namespace {

struct PcreDelete {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
};

// PCRE2's own \s has U+180E, which is no white space since Unicode 6.3: spell White_Space out.
constexpr std::string_view kWhiteSpaceSet =
    R"(\x09-\x0D\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

std::string expand_white_space(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      if (next != 's' && next != 'S') {
        out += {c, next};
      } else if (in_class) {
        PAGODA_CHECK(next == 's');  // \S inside a class cannot be spelt out
        out += kWhiteSpaceSet;
      } else {
        out += next == 's' ? "[" : "[^";
        out += kWhiteSpaceSet;
        out += ']';
      }
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out += c;
  }
  return out;
}

}  // namespace

class PreTokenizer::Regex {
 public:
  explicit Regex(std::string_view pattern) {
    const std::string expanded = expand_white_space(pattern);
    int error = 0;
    size_t error_offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expanded.data()), expanded.size(), PCRE2_UTF | PCRE2_UCP,
                              &error, &error_offset, nullptr));
    PAGODA_CHECK(code_ != nullptr);  // the patterns are our own table
    // Where the system forbids executable memory this fails, and PCRE2 interprets: same pieces, about 6x slower.
    if (pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE) != 0) {
      log_message(LogLevel::kWarning, "tokenizer: no JIT for the pre-tokenizer pattern, using the slower interpreter");
    }
  }

  // Appends the ends of matches and gaps of `text`, moved by `base`.
  void split(std::string_view text, size_t base, std::vector<size_t>& ends) const {
    const std::unique_ptr<pcre2_match_data, PcreDelete> data(pcre2_match_data_create(1, nullptr));
    const std::unique_ptr<pcre2_match_context, PcreDelete> context(pcre2_match_context_create(nullptr));
    if (!data || !context) throw std::bad_alloc();
    // One match costs at most a few steps per byte that is left; the patterns are linear.
    const size_t limit = std::min<size_t>(std::numeric_limits<uint32_t>::max(), 1000 + 64 * text.size());
    pcre2_set_match_limit(context.get(), static_cast<uint32_t>(limit));

    size_t begin = 0;
    while (begin < text.size()) {
      const int rc = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), begin,
                                 PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, data.get(), context.get());
      if (rc < 0) {
        if (rc != PCRE2_ERROR_NOMATCH) {
          log_message(LogLevel::kError, "tokenizer: pre-tokenizer pattern failed, PCRE2 error " + std::to_string(rc) +
                                            "; the rest of the text stays one word");
        }
        break;
      }
      const size_t* span = pcre2_get_ovector_pointer(data.get());
      if (span[0] > begin) ends.push_back(base + span[0]);
      ends.push_back(base + span[1]);
      begin = span[1];
    }
    if (begin < text.size()) ends.push_back(base + text.size());
  }

 private:
  std::unique_ptr<pcre2_code, PcreDelete> code_;
};

PreTokenizer::PreTokenizer() = default;
PreTokenizer::~PreTokenizer() = default;

Result<std::unique_ptr<PreTokenizer>> PreTokenizer::create(std::string_view name) {
  const PreTokenizerRow* row = find_pre_tokenizer(name);
  if (row == nullptr) {
    return unimplemented("tokenizer.ggml.pre: unknown pre-tokenizer \"" + std::string(name.substr(0, 64)) +
                         "\"; a wrong one would silently change the model's input");
  }
  std::unique_ptr<PreTokenizer> result(new PreTokenizer());
  for (const PreTokenizerStep& step : *row->steps) {
    if (step.kind == PreTokenizerStep::Kind::kNone) break;
    result->steps_.push_back(
        {step.kind, step.kind == PreTokenizerStep::Kind::kRegex ? std::make_unique<Regex>(step.pattern) : nullptr});
  }
  return result;
}

void PreTokenizer::split(std::string_view text, std::vector<size_t>& ends) const {
  ends.clear();
  if (text.empty()) return;
  ends.push_back(text.size());
  std::vector<size_t> previous;
  for (const Step& step : steps_) {
    previous.swap(ends);
    ends.clear();
    size_t begin = 0;
    for (const size_t end : previous) {
      const std::string_view piece = text.substr(begin, end - begin);
      if (step.regex) {
        step.regex->split(piece, begin, ends);
      } else {
        const size_t cut = trailing_white_space(piece);
        if (cut > 0 && cut < piece.size()) ends.push_back(begin + cut);
        ends.push_back(end);
      }
      begin = end;
    }
  }
}

}  // namespace pagoda
