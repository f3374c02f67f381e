#include "engine/output_processor.h"

#include <utility>

#include "base/check.h"

namespace pagoda {

OutputProcessor::OutputProcessor(const Tokenizer& tokenizer, std::shared_ptr<const SamplingParams> sampling,
                                 int32_t choice_idx, const Detokenizer::Options& options)
    : sampling_(std::move(sampling)),
      choice_idx_(choice_idx),
      detokenizer_(tokenizer, options),
      stop_matcher_(sampling_->stop) {}

// The rest of the text. A broken character at the end may complete a stop string too.
std::string OutputProcessor::finish_text() {
  std::string text = stop_matcher_.push(detokenizer_.finish());
  text += stop_matcher_.finish();
  return text;
}

std::optional<StreamEvent> OutputProcessor::push(int32_t id, TokenLogprobs logprobs, FinishReason finish) {
  if (is_finished_) return std::nullopt;
  StreamEvent event;
  event.choice_idx = choice_idx_;
  event.ids.push_back(id);
  if (sampling_->num_logprobs >= 0) event.logprobs.push_back(std::move(logprobs));
  ++num_output_tokens_;

  if (finish != FinishReason::kStop) event.text = stop_matcher_.push(detokenizer_.push(id));
  if (finish != FinishReason::kNone) event.text += finish_text();
  event.finish = stop_matcher_.is_stopped() ? FinishReason::kStop : finish;
  is_finished_ = event.finish != FinishReason::kNone;
  return event;
}

std::optional<StreamEvent> OutputProcessor::end(FinishReason reason, const Status& error) {
  PAGODA_CHECK(reason != FinishReason::kNone);
  if (is_finished_) return std::nullopt;
  is_finished_ = true;
  StreamEvent event;
  event.choice_idx = choice_idx_;
  event.text = finish_text();
  event.finish = reason;
  event.error = error;
  return event;
}

}  // namespace pagoda
