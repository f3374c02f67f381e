#pragma once
// Engine: requests in, streams out. One engine thread runs the loop plan -> execute -> commit; one output thread turns
// tokens into text and events, so detokenising and slow readers never hold up compute.
//
// Queues: inbox (submits, cancels, stop-string hits; many writers, the engine thread reads) and outbox (step events; the
// engine thread writes, the output thread reads).
//
// Thread rule: submit() from any thread. The tokenizer must outlive the engine; streams may outlive it.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "engine/executor.h"
#include "engine/output_processor.h"
#include "engine/stream_impl.h"
#include "pagoda/request.h"
#include "pagoda/stream.h"
#include "scheduler/scheduler.h"
#include "tokenizer/tokenizer.h"

namespace pagoda {

struct EngineConfig {
  SchedulerConfig scheduler;
  size_t max_queued_requests = 4096;  ///< that wait for a slot; each choice that waits counts
  size_t max_waiting_events = 64;  ///< of one stream, before events of a choice are joined
};

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> create(std::unique_ptr<Executor> executor, const Tokenizer& tokenizer,
                                                EngineConfig config);
  /// Cancels what is running and joins both threads.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// kInvalidArgument naming the field; kResourceExhausted when the queue is full; kFailedPrecondition after shutdown.
  Result<std::unique_ptr<Stream>> submit(Request request);

 private:
  using Micros = int64_t;

  /// A request's output side; made by submit, used by the output thread only.
  struct OutputState {
    std::shared_ptr<StreamQueue> queue;
    std::vector<OutputProcessor> choices;
    Micros submitted_us = 0;
    std::vector<RequestTimings> timings;   // by choice
    std::vector<Micros> started_us, first_token_us;
    int32_t num_unfinished = 0;
  };

  struct Submit {
    uint64_t request_id = 0;
    SequenceRequest request;
    std::unique_ptr<OutputState> output;
  };
  struct Cancel {
    uint64_t request_id = 0;
  };
  struct StopHit {
    SequenceId sequence_id = 0;
    int32_t num_kept = 0;
  };
  using Command = std::variant<Submit, Cancel, StopHit>;

  /// The many-to-one queue. Streams own a share of it, so that a late cancel touches nothing that is gone.
  struct Inbox {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Command> commands;   // guarded by mutex
    size_t num_submits = 0;         // guarded by mutex: in commands
    size_t num_waiting = 0;         // guarded by mutex: taken from commands, not yet running
    bool is_stopping = false;       // guarded by mutex
    void push(Command command);
  };

  struct NewRequest {
    uint64_t request_id;
    std::unique_ptr<OutputState> output;
  };
  struct StepEvent {
    SequenceEvent event;
    Status error;
    Micros begin_us, end_us;
  };
  struct RequestEnd {
    uint64_t request_id;
    FinishReason reason;
    Status error;
  };
  using Output = std::variant<NewRequest, StepEvent, RequestEnd>;

  struct SequenceRange {
    SequenceId first = 0;
    int32_t count = 0;
  };

  Engine(std::unique_ptr<Executor> executor, const Tokenizer& tokenizer, EngineConfig config,
         std::unique_ptr<Scheduler> scheduler);

  // Engine thread.
  void engine_loop();
  bool drain_inbox();
  void handle(Submit& command);
  void handle(Cancel& command);
  void handle(StopHit& command);
  void send(Output output);

  // Output thread.
  void output_loop();
  void deliver(NewRequest& output);
  void deliver(StepEvent& output);
  void deliver(RequestEnd& output);
  void finish_choice(uint64_t request_id, OutputState& state, StreamEvent event);
  /// Ends every choice that has not finished.
  static void end_choices(OutputState& state, FinishReason reason, const Status& error);
  static void add_timings(const OutputState& state, StreamEvent& event);

  std::unique_ptr<Executor> executor_;
  const Tokenizer& tokenizer_;
  const EngineConfig config_;
  std::shared_ptr<Inbox> inbox_;
  std::atomic<uint64_t> next_request_id_{1};

  // Engine thread only:
  std::unique_ptr<Scheduler> scheduler_;
  std::unordered_map<uint64_t, SequenceRange> sequences_of_;  // by request, while any of its sequences may live

  std::mutex outbox_mutex_;
  std::condition_variable outbox_changed_;
  std::deque<Output> outbox_;       // guarded by outbox_mutex_
  bool outbox_closed_ = false;      // guarded by outbox_mutex_

  // Output thread only:
  std::unordered_map<uint64_t, std::unique_ptr<OutputState>> outputs_;

  std::thread engine_thread_;
  std::thread output_thread_;
};

}  // namespace pagoda
