#include "engine/stream_impl.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>

namespace pagoda {
namespace {

StreamEvent token_event(int32_t choice, int32_t id, FinishReason finish = FinishReason::kNone) {
  StreamEvent event;
  event.choice_idx = choice;
  event.ids = {id};
  event.text = std::to_string(id) + ",";
  event.logprobs = {{{id, -1.0f}, {}}};
  event.finish = finish;
  return event;
}

std::shared_ptr<StreamQueue> make_queue(StreamQueue::Options options) {
  return std::make_shared<StreamQueue>(std::move(options));
}

TEST(Stream, AFastReaderGetsEveryEventThenTheEnd) {
  const auto queue = make_queue({});
  StreamImpl stream(queue);
  for (int32_t id = 0; id < 3; ++id) {
    queue->push(token_event(0, id, id == 2 ? FinishReason::kStop : FinishReason::kNone));
    const auto event = stream.next();
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->ids, std::vector<int32_t>{id});
    EXPECT_EQ(event->finish, id == 2 ? FinishReason::kStop : FinishReason::kNone);
  }
  EXPECT_FALSE(stream.next().has_value());
  EXPECT_FALSE(stream.next().has_value());
}

TEST(Stream, ASlowReaderGetsFewerEventsButAllOfTheOutput) {
  const auto queue = make_queue({.num_choices = 3, .max_events = 4});
  StreamImpl stream(queue);
  for (int32_t id = 0; id < 1000; ++id) {
    for (int32_t choice = 0; choice < 3; ++choice) {
      queue->push(token_event(choice, id, id == 999 ? FinishReason::kLength : FinishReason::kNone));
    }
  }
  int num_events = 0;
  std::map<int32_t, std::vector<int32_t>> ids;
  std::map<int32_t, std::string> texts;
  std::map<int32_t, int> num_finishes;
  while (auto event = stream.next()) {
    ++num_events;
    EXPECT_EQ(event->ids.size(), event->logprobs.size());
    ids[event->choice_idx].insert(ids[event->choice_idx].end(), event->ids.begin(), event->ids.end());
    texts[event->choice_idx] += event->text;
    num_finishes[event->choice_idx] += event->finish == FinishReason::kLength;
  }
  EXPECT_LE(num_events, 4 + 3);
  std::string text;
  for (int32_t id = 0; id < 1000; ++id) text += std::to_string(id) + ",";
  for (int32_t choice = 0; choice < 3; ++choice) {
    ASSERT_EQ(ids[choice].size(), 1000u);
    for (int32_t id = 0; id < 1000; ++id) EXPECT_EQ(ids[choice][static_cast<size_t>(id)], id);
    EXPECT_EQ(texts[choice], text);
    EXPECT_EQ(num_finishes[choice], 1);
  }
}

TEST(Stream, AChoiceWithNothingWaitingIsHeardBeyondTheLimit) {
  const auto queue = make_queue({.num_choices = 2, .max_events = 2});
  StreamImpl stream(queue);
  for (int32_t id = 0; id < 5; ++id) queue->push(token_event(0, id));
  queue->push(token_event(1, 7));
  EXPECT_EQ(stream.next()->ids, (std::vector<int32_t>{0}));
  EXPECT_EQ(stream.next()->ids, (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(stream.next()->ids, (std::vector<int32_t>{7}));
}

TEST(Stream, JoinedEventsKeepErrorTimingsAndPromptLogprobs) {
  const auto queue = make_queue({.max_events = 1});
  StreamImpl stream(queue);
  StreamEvent first;
  first.prompt_tokens_done = 5;
  first.prompt_logprobs.resize(4);
  queue->push(first);
  StreamEvent second;
  second.prompt_tokens_done = 9;
  second.prompt_logprobs.resize(3);
  queue->push(second);
  StreamEvent last = token_event(0, 1, FinishReason::kError);
  last.error = internal_error("broken");
  last.timings.num_output_tokens = 1;
  queue->push(last);
  const auto event = stream.next();
  EXPECT_EQ(event->prompt_tokens_done, 9);
  EXPECT_EQ(event->prompt_logprobs.size(), 7u);
  EXPECT_EQ(event->finish, FinishReason::kError);
  EXPECT_EQ(event->error.message(), "broken");
  EXPECT_EQ(event->timings.num_output_tokens, 1);
  EXPECT_FALSE(stream.next().has_value());
}

TEST(Stream, EventsAfterAChoicesEndAreDropped) {
  const auto queue = make_queue({.num_choices = 2});
  StreamImpl stream(queue);
  queue->push(token_event(0, 1, FinishReason::kStop));
  queue->push(token_event(0, 2));
  queue->push(token_event(1, 3, FinishReason::kLength));
  EXPECT_EQ(stream.next()->ids, (std::vector<int32_t>{1}));
  EXPECT_EQ(stream.next()->ids, (std::vector<int32_t>{3}));
  EXPECT_FALSE(stream.next().has_value());
}

TEST(Stream, FinishAllEndsTheChoicesThatHaveNot) {
  const auto queue = make_queue({.num_choices = 3});
  StreamImpl stream(queue);
  queue->push(token_event(1, 4, FinishReason::kStop));
  queue->finish_all(FinishReason::kError, internal_error("gone"));
  queue->finish_all(FinishReason::kCancelled, {});
  EXPECT_EQ(stream.next()->finish, FinishReason::kStop);
  for (const int32_t choice : {0, 2}) {
    const auto event = stream.next();
    EXPECT_EQ(event->choice_idx, choice);
    EXPECT_EQ(event->finish, FinishReason::kError);
    EXPECT_EQ(event->error.message(), "gone");
  }
  EXPECT_FALSE(stream.next().has_value());
}

TEST(Stream, CancelIsAskedForOnceAndTheEngineEndsTheStream) {
  int num_cancels = 0;
  const auto queue = make_queue({.on_cancel = [&] { ++num_cancels; }});
  {
    StreamImpl stream(queue);
    stream.cancel();
    stream.cancel();
    EXPECT_EQ(num_cancels, 1);
    EXPECT_TRUE(queue->is_cancelled());
    queue->finish_all(FinishReason::kCancelled, {});
    EXPECT_EQ(stream.next()->finish, FinishReason::kCancelled);
    EXPECT_FALSE(stream.next().has_value());
  }
  EXPECT_EQ(num_cancels, 1);
}

TEST(Stream, DroppingTheStreamCancelsUnlessAllHasFinished) {
  int num_cancels = 0;
  const auto on_cancel = [&] { ++num_cancels; };
  const auto dropped = make_queue({.on_cancel = on_cancel});
  {
    const StreamImpl stream(dropped);
  }
  EXPECT_EQ(num_cancels, 1);
  dropped->push(token_event(0, 1));  // the engine's reference still works
  const auto complete = make_queue({.on_cancel = on_cancel});
  {
    const StreamImpl stream(complete);
    complete->push(token_event(0, 1, FinishReason::kStop));
  }
  EXPECT_EQ(num_cancels, 1);
  EXPECT_FALSE(complete->is_cancelled());
}

TEST(Stream, ProducerConsumerAndCancelOnThreeThreads) {
  for (uint32_t round = 0; round < 20; ++round) {
    constexpr int32_t kNumTokens = 2000;
    std::atomic<bool> is_cancel_seen = false;
    const auto queue =
        make_queue({.num_choices = 2, .max_events = 8, .on_cancel = [&] { is_cancel_seen.store(true); }});
    StreamImpl stream(queue);
    std::thread producer([&] {
      for (int32_t id = 0; id < kNumTokens && !is_cancel_seen.load(); ++id) {
        for (int32_t choice = 0; choice < 2; ++choice) {
          queue->push(token_event(choice, id, id == kNumTokens - 1 ? FinishReason::kLength : FinishReason::kNone));
        }
      }
      queue->finish_all(FinishReason::kCancelled, {});
    });
    std::mt19937 rng(round);
    const bool will_cancel = round % 2 == 1;
    const size_t cancel_after = rng() % kNumTokens;
    std::vector<size_t> num_ids(2, 0);
    std::thread canceller;
    while (auto event = stream.next()) {
      size_t& seen = num_ids[static_cast<size_t>(event->choice_idx)];
      for (const int32_t id : event->ids) EXPECT_EQ(id, static_cast<int32_t>(seen++));
      if (will_cancel && seen > cancel_after && !canceller.joinable())
        canceller = std::thread([&] { stream.cancel(); });
    }
    producer.join();
    if (canceller.joinable()) canceller.join();
    if (!will_cancel) EXPECT_EQ(num_ids, (std::vector<size_t>{kNumTokens, kNumTokens}));
  }
}

}  // namespace
}  // namespace pagoda
