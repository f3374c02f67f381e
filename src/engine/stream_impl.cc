#include "engine/stream_impl.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace pagoda {
namespace {

template <typename T>
void append(std::vector<T>& target, std::vector<T>& source) {
  target.insert(target.end(), std::make_move_iterator(source.begin()), std::make_move_iterator(source.end()));
}

// `later` follows `earlier` in the output of the same choice.
void join(StreamEvent& earlier, StreamEvent& later) {
  earlier.text += later.text;
  append(earlier.ids, later.ids);
  append(earlier.logprobs, later.logprobs);
  append(earlier.prompt_logprobs, later.prompt_logprobs);
  earlier.prompt_tokens_done = std::max(earlier.prompt_tokens_done, later.prompt_tokens_done);
  earlier.finish = later.finish;
  earlier.error = std::move(later.error);
  earlier.timings = later.timings;
}

}  // namespace

StreamQueue::StreamQueue(Options options)
    : options_(std::move(options)),
      is_finished_(static_cast<size_t>(options_.num_choices), false),
      num_unfinished_(options_.num_choices) {
  PAGODA_CHECK(options_.num_choices > 0 && options_.max_events > 0);
}

void StreamQueue::push_locked(StreamEvent event) {
  PAGODA_CHECK(event.choice_idx >= 0 && event.choice_idx < options_.num_choices);
  const auto choice = static_cast<size_t>(event.choice_idx);
  if (is_finished_[choice]) return;
  if (event.finish != FinishReason::kNone) {
    is_finished_[choice] = true;
    --num_unfinished_;
  }
  if (events_.size() >= options_.max_events) {
    const auto last = std::find_if(events_.rbegin(), events_.rend(),
                                   [&](const StreamEvent& e) { return e.choice_idx == event.choice_idx; });
    if (last != events_.rend()) return join(*last, event);
  }
  events_.push_back(std::move(event));
}

void StreamQueue::push(StreamEvent event) {
  {
    const std::lock_guard lock(mutex_);
    push_locked(std::move(event));
  }
  changed_.notify_one();
}

void StreamQueue::finish_all(FinishReason reason, const Status& error) {
  PAGODA_CHECK(reason != FinishReason::kNone);
  {
    const std::lock_guard lock(mutex_);
    for (int32_t choice = 0; choice < options_.num_choices; ++choice) {
      StreamEvent event;
      event.choice_idx = choice;
      event.finish = reason;
      event.error = error;
      push_locked(std::move(event));
    }
  }
  changed_.notify_one();
}

std::optional<StreamEvent> StreamQueue::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !events_.empty() || num_unfinished_ == 0; });
  if (events_.empty()) return std::nullopt;
  StreamEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void StreamQueue::cancel() {
  {
    const std::lock_guard lock(mutex_);
    if (is_cancelled_ || num_unfinished_ == 0) return;
    is_cancelled_ = true;
  }
  if (options_.on_cancel) options_.on_cancel();
}

bool StreamQueue::is_cancelled() const {
  const std::lock_guard lock(mutex_);
  return is_cancelled_;
}

}  // namespace pagoda
