#pragma once
// StreamQueue and StreamImpl: the two ends of a request's output. The engine's output thread pushes into the queue and
// never waits; the caller holds the StreamImpl.
//
// Memory: at most max_events + num_choices events wait. Beyond that a choice's output joins its last waiting event, so
// a slow reader gets fewer, larger events; what they hold in sum is bounded by the request's own length.
//
// Thread rule: push() and finish_all() from one producer thread, next() from one consumer thread, cancel() from any.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "pagoda/stream.h"

namespace pagoda {

class StreamQueue {
 public:
  struct Options {
    int32_t num_choices = 1;
    size_t max_events = 64;  ///< one choice at 64 tokens/s: a second of output, token by token
    /// Called at most once, from the thread that cancels, with no lock held. It may come at any time until the Stream
    /// is dropped, also after the engine is gone: it must own what it touches.
    std::function<void()> on_cancel = nullptr;
  };
  explicit StreamQueue(Options options);
  StreamQueue(const StreamQueue&) = delete;
  StreamQueue& operator=(const StreamQueue&) = delete;

  /// Dropped when the event's choice has finished: what a cancel overtook may still arrive.
  void push(StreamEvent event);
  /// Ends every choice that has not finished (engine failure, shutdown). No push() is needed or heard afterwards.
  void finish_all(FinishReason reason, const Status& error);

  std::optional<StreamEvent> next();
  /// Asks the engine to stop. The stream ends when the engine has pushed the last events.
  void cancel();
  bool is_cancelled() const;

 private:
  void push_locked(StreamEvent event);

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  std::deque<StreamEvent> events_;
  std::vector<bool> is_finished_;  // [num_choices]
  int32_t num_unfinished_;
  bool is_cancelled_ = false;
};

/// What the caller of Engine::submit holds. Dropping it cancels the request.
class StreamImpl : public Stream {
 public:
  explicit StreamImpl(std::shared_ptr<StreamQueue> queue) : queue_(std::move(queue)) {}
  ~StreamImpl() override { queue_->cancel(); }
  StreamImpl(const StreamImpl&) = delete;
  StreamImpl& operator=(const StreamImpl&) = delete;

  std::optional<StreamEvent> next() override { return queue_->next(); }
  void cancel() override { queue_->cancel(); }

 private:
  std::shared_ptr<StreamQueue> queue_;
};

}  // namespace pagoda
