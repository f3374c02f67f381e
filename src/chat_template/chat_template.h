#pragma once
// Chat templates: the part of Jinja2 that models ship, as a bounded interpreter. No reflection, no attribute of a host
// object, no files, no environment: a template sees only the values it is given.
//
// Semantics follow jinja2's ImmutableSandboxedEnvironment with trim_blocks and lstrip_blocks on and the loop-controls
// extension, which is how Hugging Face `transformers` renders chat templates.
//
// Thread rule: a ChatTemplate is immutable after parse; render may be called from many threads.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "pagoda/status.h"

namespace pagoda {

struct ChatTemplateLimits {
  uint64_t max_steps = 1'000'000;        ///< interpreter steps
  uint64_t max_output_bytes = 16u << 20; ///< rendered text, and any one string on the way
  uint64_t max_memory_bytes = 32u << 20; ///< values alive during a render
  uint32_t max_depth = 64;               ///< nesting of expressions, blocks and macro calls
  uint64_t max_source_bytes = 4u << 20;
};

/// A stretch of rendered text and where it came from. Text of the template itself is trusted, text that came from a
/// variable (message content, tool descriptions) is not. Strings carry this per part: concatenation, `~`, join, format,
/// slicing and trimming keep each part's origin; any other operation on a mixed string makes all of it untrusted.
struct RenderedSpan {
  std::string text;
  bool is_trusted = false;
};

struct ChatInput {
  JsonValue messages;                 ///< array of {"role", "content", ...}
  JsonValue tools;                    ///< array, or null when there are none
  JsonValue documents;
  bool add_generation_prompt = true;
  std::string bos_token, eos_token;   ///< texts, "" where the model has none; trusted
  JsonObject extra;                   ///< further variables by name (e.g. enable_thinking)
  int64_t now_unix_seconds = 0;       ///< what strftime_now sees, as UTC
};

class ChatTemplate {
 public:
  /// kInvalidArgument with line number for a syntax error or a construct outside the subset.
  static Result<ChatTemplate> parse(std::string_view source, const ChatTemplateLimits& limits = {});

  /// kInvalidArgument: the template raised (raise_exception gives its text) or met a type error; line number included.
  /// kResourceExhausted: a limit was reached.
  Result<std::vector<RenderedSpan>> render(const ChatInput& input) const;

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The spans' text in one string.
std::string rendered_text(const std::vector<RenderedSpan>& spans);

}  // namespace pagoda
