#pragma once
// OutputProcessor: the tokens of one choice to the events of its stream: text without halves of characters, cut at the
// first stop string, and exactly the tokens that count.
//
// Which tokens count: all up to the one that ends the choice, that one included. An end-of-generation or stop id is in
// ids, logprobs and usage, but adds no text. The token that completes a stop string is in them too; its text is cut.
// What the engine computed after that token is dropped, whenever it arrives. Ids and logprobs come with their token;
// text that may still become a character or a stop string comes later.
//
// Thread rule: one choice, one thread (the output thread). The tokenizer must outlive it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/stop_matcher.h"
#include "pagoda/request.h"
#include "pagoda/stream.h"
#include "tokenizer/tokenizer.h"

namespace pagoda {

class OutputProcessor {
 public:
  OutputProcessor(const Tokenizer& tokenizer, std::shared_ptr<const SamplingParams> sampling, int32_t choice_idx,
                  const Detokenizer::Options& options);

  /// The next token. `finish` is what the scheduler says of it: kNone; kStop: it is an end-of-generation or stop id;
  /// kLength: no more will come. The event's finish may be kStop where `finish` is not: is_stopped_by_text().
  /// nullopt: the choice has finished before, the token does not count.
  std::optional<StreamEvent> push(int32_t id, TokenLogprobs logprobs, FinishReason finish);
  /// Ends the choice without a token (cancelled, failed). Held text comes out. nullopt: it has finished before.
  std::optional<StreamEvent> end(FinishReason reason, const Status& error);

  bool is_finished() const { return is_finished_; }
  /// A stop string ended the choice: the scheduler, which sees no text, is to be told, with num_output_tokens().
  bool is_stopped_by_text() const { return stop_matcher_.is_stopped(); }
  int32_t num_output_tokens() const { return num_output_tokens_; }

 private:
  std::string finish_text();

  std::shared_ptr<const SamplingParams> sampling_;
  const int32_t choice_idx_;
  Detokenizer detokenizer_;
  StopMatcher stop_matcher_;
  int32_t num_output_tokens_ = 0;
  bool is_finished_ = false;
};

}  // namespace pagoda
