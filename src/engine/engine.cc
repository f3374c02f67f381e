#include "engine/engine.h"

#include <pthread.h>

#include <chrono>

namespace pagoda {

namespace {

int64_t now_us() {
  using namespace std::chrono;
  return duration_cast<microseconds>(steady_clock::now().time_since_epoch()).count();
}

double to_ms(int64_t us) { return static_cast<double>(us) / 1000.0; }

}  // namespace

void Engine::Inbox::push(Command command) {
  {
    const std::lock_guard lock(mutex);
    commands.push_back(std::move(command));
  }
  changed.notify_one();
}

Result<std::unique_ptr<Engine>> Engine::create(std::unique_ptr<Executor> executor, const Tokenizer& tokenizer,
                                               EngineConfig config) {
  const auto ends = executor->end_of_generation_ids();
  config.scheduler.end_of_generation_ids.assign(ends.begin(), ends.end());
  PAGODA_ASSIGN_OR_RETURN(auto scheduler, Scheduler::create(config.scheduler));
  return std::unique_ptr<Engine>(new Engine(std::move(executor), tokenizer, std::move(config), std::move(scheduler)));
}

Engine::Engine(std::unique_ptr<Executor> executor, const Tokenizer& tokenizer, EngineConfig config,
               std::unique_ptr<Scheduler> scheduler)
    : executor_(std::move(executor)),
      tokenizer_(tokenizer),
      config_(std::move(config)),
      inbox_(std::make_shared<Inbox>()),
      scheduler_(std::move(scheduler)),
      engine_thread_([this] { engine_loop(); }),
      output_thread_([this] { output_loop(); }) {
  pthread_setname_np(engine_thread_.native_handle(), "pagoda-engine");
  pthread_setname_np(output_thread_.native_handle(), "pagoda-output");
}

Engine::~Engine() {
  {
    const std::lock_guard lock(inbox_->mutex);
    inbox_->is_stopping = true;
  }
  inbox_->changed.notify_all();
  engine_thread_.join();
  {
    const std::lock_guard lock(outbox_mutex_);
    outbox_closed_ = true;
  }
  outbox_changed_.notify_all();
  output_thread_.join();
  // Requests that the engine thread did not get to see. Their streams share the inbox: a command left in it would also
  // keep both alive for ever.
  std::deque<Command> unseen;
  {
    const std::lock_guard lock(inbox_->mutex);
    unseen.swap(inbox_->commands);
  }
  for (Command& command : unseen) {
    if (auto* submit = std::get_if<Submit>(&command)) end_choices(*submit->output, FinishReason::kCancelled, {});
  }
}

Result<std::unique_ptr<Stream>> Engine::submit(Request request) {
  const int32_t vocab_size = executor_->vocab_size();
  PAGODA_RETURN_IF_ERROR(validate(request.sampling, vocab_size));
  if (request.prompt_ids.empty()) return invalid_argument("the prompt has no tokens");
  for (size_t i = 0; i < request.prompt_ids.size(); ++i) {
    const int32_t id = request.prompt_ids[i];
    if (id < 0 || id >= vocab_size) {
      return invalid_argument("prompt_ids[" + std::to_string(i) + "] = " + std::to_string(id) + " is outside 0.." +
                              std::to_string(vocab_size - 1));
    }
  }
  if (request.prompt_ids.size() >= static_cast<size_t>(config_.scheduler.max_context)) {
    return invalid_argument("the prompt has " + std::to_string(request.prompt_ids.size()) + " tokens, the context holds " +
                            std::to_string(config_.scheduler.max_context) +
                            " and needs room for at least one more; shorten the prompt or raise --ctx");
  }
  const auto num_prompt = static_cast<int32_t>(request.prompt_ids.size());
  const auto sampling = std::make_shared<const SamplingParams>(request.sampling);
  Submit command;
  command.request_id = next_request_id_.fetch_add(1);
  command.request = {command.request_id, std::move(request.prompt_ids), sampling, std::move(request.cache_namespace)};

  auto output = std::make_unique<OutputState>();
  StreamQueue::Options options;
  options.num_choices = sampling->num_choices;
  options.max_events = config_.max_waiting_events;
  options.on_cancel = [inbox = inbox_, id = command.request_id] { inbox->push(Cancel{id}); };
  output->queue = std::make_shared<StreamQueue>(std::move(options));
  for (int32_t i = 0; i < sampling->num_choices; ++i) output->choices.emplace_back(tokenizer_, sampling, i, Detokenizer::Options{});
  output->timings.resize(sampling->num_choices);
  for (RequestTimings& timings : output->timings) timings.num_prompt_tokens = num_prompt;
  output->started_us.resize(sampling->num_choices);
  output->first_token_us.resize(sampling->num_choices);
  output->submitted_us = now_us();
  output->num_unfinished = sampling->num_choices;
  auto stream = std::make_unique<StreamImpl>(output->queue);
  command.output = std::move(output);
  {
    const std::lock_guard lock(inbox_->mutex);
    if (inbox_->is_stopping) return failed_precondition("the engine is shutting down");
    if (inbox_->num_submits + inbox_->num_waiting >= config_.max_queued_requests) {
      return resource_exhausted("the request queue is full (" + std::to_string(config_.max_queued_requests) + "); retry later");
    }
    ++inbox_->num_submits;
    inbox_->commands.push_back(std::move(command));
  }
  inbox_->changed.notify_one();
  return std::unique_ptr<Stream>(std::move(stream));
}

// The engine thread: steps 5 to 10 of a request's life.

void Engine::engine_loop() {
  StepPlan plan;
  StepResult result;
  std::vector<SequenceEvent> events;
  while (drain_inbox()) {
    const Micros begin = now_us();
    scheduler_->plan(begin, config_.scheduler.max_step_tokens, plan);
    {
      const std::lock_guard lock(inbox_->mutex);
      inbox_->num_waiting = static_cast<size_t>(scheduler_->num_waiting());
    }
    const Status status = executor_->step(plan, result);
    events.clear();
    status.ok() ? scheduler_->commit(plan, result, events) : scheduler_->abandon(plan, events);
    const Micros end = now_us();
    for (SequenceEvent& event : events) send(StepEvent{std::move(event), status, begin, end});
  }
}

// Takes in all commands; waits for more while there is nothing to compute. False: shutting down.
bool Engine::drain_inbox() {
  do {
    std::deque<Command> commands;
    {
      std::unique_lock lock(inbox_->mutex);
      inbox_->changed.wait(lock, [&] { return inbox_->is_stopping || !inbox_->commands.empty() || scheduler_->has_work(); });
      if (inbox_->is_stopping) return false;
      commands.swap(inbox_->commands);
      inbox_->num_waiting = static_cast<size_t>(scheduler_->num_waiting()) + inbox_->num_submits;
      inbox_->num_submits = 0;
    }
    for (Command& command : commands) std::visit([this](auto& c) { handle(c); }, command);
  } while (!scheduler_->has_work());
  return true;
}

void Engine::handle(Submit& command) {
  const int32_t num_choices = command.request.sampling->num_choices;
  send(NewRequest{command.request_id, std::move(command.output)});
  auto first = scheduler_->submit(std::move(command.request));
  if (!first.ok()) {
    send(RequestEnd{command.request_id, FinishReason::kError, first.status()});
    return;
  }
  sequences_of_[command.request_id] = {*first, num_choices};
}

void Engine::handle(Cancel& command) {
  const auto found = sequences_of_.find(command.request_id);
  if (found == sequences_of_.end()) return;
  for (int32_t i = 0; i < found->second.count; ++i) scheduler_->cancel(found->second.first + i);
  sequences_of_.erase(found);
  send(RequestEnd{command.request_id, FinishReason::kCancelled, {}});
}

void Engine::handle(StopHit& command) { scheduler_->finish(command.sequence_id, command.num_kept); }

void Engine::send(Output output) {
  {
    const std::lock_guard lock(outbox_mutex_);
    outbox_.push_back(std::move(output));
  }
  outbox_changed_.notify_one();
}

// The output thread: steps 11 and 12.

void Engine::output_loop() {
  for (;;) {
    std::deque<Output> batch;
    {
      std::unique_lock lock(outbox_mutex_);
      outbox_changed_.wait(lock, [&] { return outbox_closed_ || !outbox_.empty(); });
      if (outbox_.empty()) break;
      batch.swap(outbox_);
    }
    for (Output& output : batch) std::visit([this](auto& o) { deliver(o); }, output);
  }
  for (auto& [id, state] : outputs_) end_choices(*state, FinishReason::kCancelled, {});
  outputs_.clear();
}

void Engine::deliver(NewRequest& output) { outputs_[output.request_id] = std::move(output.output); }

void Engine::deliver(StepEvent& output) {
  const SequenceEvent& e = output.event;
  const auto found = outputs_.find(e.request_id);
  if (found == outputs_.end()) return;  // cancelled: what the step still computed does not count
  OutputState& state = *found->second;
  OutputProcessor& choice = state.choices[e.choice_idx];
  RequestTimings& timings = state.timings[e.choice_idx];
  if (state.started_us[e.choice_idx] == 0) {
    state.started_us[e.choice_idx] = output.begin_us;
    timings.queued_ms = to_ms(output.begin_us - state.submitted_us);
    timings.num_cached_tokens = e.num_cached_tokens;
  }
  std::optional<StreamEvent> event;
  if (e.token_id >= 0) {
    Micros& first = state.first_token_us[e.choice_idx];
    if (first == 0) first = output.end_us;
    timings.prefill_ms = to_ms(first - state.started_us[e.choice_idx]);
    timings.decode_ms = to_ms(output.end_us - first);
    event = choice.push(e.token_id, std::move(output.event.logprobs), e.finish);
  } else if (e.finish != FinishReason::kNone) {
    const Status no_token = internal_error("no token can be drawn after " + std::to_string(e.num_prompt_tokens + e.num_generated) +
                                           " tokens: the logits hold a NaN or an infinity, or every token is masked");
    event = choice.end(e.finish, output.error.ok() && e.finish == FinishReason::kError ? no_token : output.error);
  } else {
    event = StreamEvent{};
    event->choice_idx = e.choice_idx;
  }
  if (!event) return;
  event->prompt_logprobs = std::move(output.event.prompt_logprobs);
  event->prompt_tokens_done = e.num_prompt_computed;
  if (choice.is_stopped_by_text() && event->finish == FinishReason::kStop && e.finish == FinishReason::kNone) {
    inbox_->push(StopHit{e.sequence_id, e.num_prompt_tokens + choice.num_output_tokens()});
  }
  finish_choice(e.request_id, state, std::move(*event));
}

void Engine::deliver(RequestEnd& output) {
  const auto found = outputs_.find(output.request_id);
  if (found == outputs_.end()) return;
  end_choices(*found->second, output.reason, output.error);
  outputs_.erase(found);
}

void Engine::end_choices(OutputState& state, FinishReason reason, const Status& error) {
  for (OutputProcessor& choice : state.choices) {
    auto event = choice.end(reason, error);
    if (!event) continue;
    add_timings(state, *event);
    state.queue->push(std::move(*event));
  }
}

void Engine::add_timings(const OutputState& state, StreamEvent& event) {
  event.timings = state.timings[event.choice_idx];
  event.timings.num_output_tokens = state.choices[event.choice_idx].num_output_tokens();
}

// Pushes the event; the last one of a choice carries its timings, the last one of all ends the request.
void Engine::finish_choice(uint64_t request_id, OutputState& state, StreamEvent event) {
  const bool is_last = event.finish != FinishReason::kNone;
  if (is_last) {
    add_timings(state, event);
    --state.num_unfinished;
  }
  const bool is_over = is_last && state.num_unfinished == 0;
  state.queue->push(std::move(event));
  if (is_over) {
    outputs_.erase(request_id);
    inbox_->push(Cancel{request_id});  // the engine thread forgets the request
  }
}

}  // namespace pagoda
