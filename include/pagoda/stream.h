#pragma once
// Stream: the output of one request, as the engine produces it.
//
// Thread rule: one consumer thread. cancel() may come from any thread. The engine keeps its own reference; dropping the
// Stream cancels the request.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pagoda/request.h"

namespace pagoda {

struct RequestTimings {
  double queued_ms = 0;
  double prefill_ms = 0;        ///< first computed token to first output token
  double decode_ms = 0;         ///< first output token to the last
  int32_t num_prompt_tokens = 0;
  int32_t num_cached_tokens = 0; ///< prompt tokens taken from the prefix cache
  int32_t num_output_tokens = 0;
};

struct StreamEvent {
  int32_t choice_idx = 0;
  std::string text;                            ///< final text that this event adds; may be empty
  std::vector<int32_t> ids;                    ///< tokens that this event adds
  std::vector<TokenLogprobs> logprobs;         ///< one per id when asked for
  std::vector<TokenLogprobs> prompt_logprobs;  ///< on the first event of choice 0 when asked for: tokens 1..n-1
  int32_t prompt_tokens_done = 0;              ///< progress of a long prefill
  FinishReason finish = FinishReason::kNone;   ///< the choice's last event
  Status error;                                ///< with kError
  RequestTimings timings;                      ///< filled on the last event of a choice
};

class Stream {
 public:
  virtual ~Stream() = default;
  /// Waits for the next event; nullopt when every choice has finished.
  virtual std::optional<StreamEvent> next() = 0;
  virtual void cancel() = 0;
};

}  // namespace pagoda
