#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

#include "engine_test_rig.h"

namespace pagoda {
namespace {

std::vector<int32_t> iota_prompt(int32_t first, int32_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

/// Prompts of mixed length, a third of which share a long beginning.
std::vector<Request> mixed_requests(int32_t count) {
  std::mt19937 random(7);
  std::vector<Request> requests;
  for (int32_t i = 0; i < count; ++i) {
    std::vector<int32_t> prompt = i % 3 == 0 ? iota_prompt(20, 17) : std::vector<int32_t>{};
    const auto length = static_cast<int32_t>(1 + random() % 24);
    for (int32_t k = 0; k < length; ++k) prompt.push_back(static_cast<int32_t>(random() % kFirstPieceId));
    requests.push_back(make_request(std::move(prompt), static_cast<int32_t>(1 + random() % 40), random() % 4));
  }
  return requests;
}

TEST(Engine, ManyRequestsFromManyThreadsEqualTheirSoloRuns) {
  const std::vector<Request> requests = mixed_requests(48);
  const Script script = make_hash_script(kFirstPieceId);
  Rig rig({});
  std::vector<Collected> outputs(requests.size());
  std::vector<std::thread> clients;
  for (size_t client = 0; client < 4; ++client) {
    clients.emplace_back([&, client] {
      std::vector<std::unique_ptr<Stream>> streams;
      for (size_t i = client; i < requests.size(); i += 4) streams.push_back(rig.submit(requests[i]));
      for (size_t k = 0; k < streams.size(); ++k) outputs[client + 4 * k] = collect(*streams[k]);
    });
  }
  for (std::thread& client : clients) client.join();

  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(outputs[i].ids, scripted_ids(script, requests[i])) << "request " << i;
    EXPECT_EQ(outputs[i].finish, FinishReason::kLength);
    Rig solo({});
    const Collected alone = collect(*solo.submit(requests[i]));
    EXPECT_EQ(outputs[i].ids, alone.ids);
    EXPECT_EQ(outputs[i].text, alone.text);
  }
}

TEST(Engine, B19_PreemptedRequestsEqualTheirSoloRuns) {
  RigOptions options;
  options.block_tokens = 16;
  options.num_blocks = 10;
  options.prefill_chunk = 32;
  const Script script = make_hash_script(kFirstPieceId);
  Rig rig(options);
  const std::vector<Request> requests = {make_request(iota_prompt(10, 32), 96),
                                         make_request(iota_prompt(90, 32), 96, 7)};
  std::vector<std::unique_ptr<Stream>> streams;
  for (const Request& request : requests) streams.push_back(rig.submit(request));
  for (size_t i = 0; i < requests.size(); ++i) {
    const Collected output = collect(*streams[i]);
    EXPECT_EQ(output.ids, scripted_ids(script, requests[i])) << "request " << i;
    EXPECT_EQ(output.finish, FinishReason::kLength);
    EXPECT_EQ(output.timings.num_output_tokens, 96);
    EXPECT_EQ(output.timings.num_prompt_tokens, 32);
  }
  EXPECT_GE(rig.num_resumed(), 1);
}

TEST(Engine, B21_ASeededRequestIgnoresItsNeighbours) {
  const Request target = make_request(iota_prompt(30, 5), 16, 42);
  const std::vector<int32_t> expected = scripted_ids(make_hash_script(kFirstPieceId), target);
  Rig rig({});
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<Request> batch = mixed_requests(round % 8);
    batch.push_back(target);
    std::shuffle(batch.begin(), batch.end(), random);
    std::vector<std::unique_ptr<Stream>> streams;
    for (const Request& request : batch) streams.push_back(rig.submit(request));
    int32_t num_found = 0;
    for (size_t i = 0; i < batch.size(); ++i) {
      const Collected output = collect(*streams[i]);
      if (batch[i].prompt_ids != target.prompt_ids) continue;
      EXPECT_EQ(output.ids, expected) << "round " << round;
      ++num_found;
    }
    EXPECT_EQ(num_found, 1);
  }
}

/// Runs a script of pieces that ends with the end token.
Collected run_pieces(const std::vector<std::string>& pieces, std::vector<std::string> stop) {
  RigOptions options;
  options.pieces = pieces;
  options.end_ids = {kEosId};
  std::vector<int32_t> ids = iota_prompt(kFirstPieceId, static_cast<int32_t>(pieces.size()));
  ids.push_back(kEosId);
  options.script = make_fixed_script(ids);
  Rig rig(options);
  Request request = make_request({5, 6, 7}, 100);
  request.sampling.stop = std::move(stop);
  return collect(*rig.submit(std::move(request)));
}

TEST(Engine, B24_AStopStringAcrossPiecesIsNeverStreamed) {
  const Collected stopped = run_pieces({"DEF", "G", "HI", "J", "K"}, {"DEFGHIJ"});
  EXPECT_EQ(stopped.text, "");
  EXPECT_EQ(stopped.finish, FinishReason::kStop);
  const Collected ruled_out = run_pieces({"DEF", "G", "HI", "J", "K"}, {"DEFGX"});
  EXPECT_EQ(ruled_out.text, "DEFGHIJK");
  EXPECT_EQ(ruled_out.finish, FinishReason::kStop);  // by the end token
  EXPECT_EQ(ruled_out.ids.back(), kEosId);
}

TEST(Engine, B24_EveryTokenisationOfATextStopsAtTheSamePlace) {
  const std::string text = "abcabd!";
  for (uint32_t cuts = 0; cuts < 1u << (text.size() - 1); ++cuts) {
    std::vector<std::string> pieces(1);
    for (size_t i = 0; i < text.size(); ++i) {
      pieces.back() += text[i];
      if (i + 1 < text.size() && (cuts >> i & 1)) pieces.emplace_back();
    }
    // A vocabulary holds each piece once: the same piece twice gets the same id in the script.
    std::vector<std::string> vocabulary;
    std::vector<int32_t> ids;
    for (const std::string& piece : pieces) {
      const auto found = std::find(vocabulary.begin(), vocabulary.end(), piece);
      ids.push_back(kFirstPieceId + static_cast<int32_t>(found - vocabulary.begin()));
      if (found == vocabulary.end()) vocabulary.push_back(piece);
    }
    ids.push_back(kEosId);
    RigOptions options;
    options.pieces = vocabulary;
    options.end_ids = {kEosId};
    options.script = make_fixed_script(ids);
    Rig rig(options);
    Request request = make_request({5}, 100);
    request.sampling.stop = {"abd", "zzz"};
    const Collected output = collect(*rig.submit(std::move(request)));
    EXPECT_EQ(output.text, "abc") << "cuts " << cuts;
    EXPECT_EQ(output.finish, FinishReason::kStop);
  }
}

TEST(Engine, B26_OnlyWhatMayBeginAStopStringIsHeldBack) {
  EXPECT_EQ(run_pieces({"a", ",", "b", ",c"}, {"b,c"}).text, "a,");
  EXPECT_EQ(run_pieces({"stop!"}, {"stop"}).text, "");
  const Collected hello = run_pieces({"h", "e", "l", "lo", "!"}, {std::string(20, 'z')});
  EXPECT_EQ(hello.text, "hello!");
  const std::vector<std::string> expected = {"h", "e", "l", "lo", "!"};
  std::vector<std::string> texts;
  std::copy_if(hello.deltas.begin(), hello.deltas.end(), std::back_inserter(texts),
               [](const auto& s) { return !s.empty(); });
  EXPECT_EQ(texts, expected);
}

TEST(Engine, B26_StopStringsHoldForCallersThatReadOnlyIds) {
  const Collected output = run_pieces({"a", "b", "c", "d"}, {"c"});
  EXPECT_EQ(output.ids, (std::vector<int32_t>{kFirstPieceId, kFirstPieceId + 1, kFirstPieceId + 2}));
  EXPECT_EQ(output.timings.num_output_tokens, 3);
}

TEST(Engine, AStopStringFreesSlotAndBlocks) {
  RigOptions options;
  options.num_blocks = 8;
  options.max_batch = 1;
  options.max_context = 33;
  options.script = make_fixed_script({kFirstByteId + 'a', kFirstByteId + 'b', kFirstByteId + 'c'});
  Rig rig(options);
  for (int round = 0; round < 4; ++round) {
    Request request = make_request({5, 6}, 0);
    request.sampling.stop = {"bc"};
    EXPECT_EQ(collect(*rig.submit(std::move(request))).text, "a");
    const Collected all = collect(*rig.submit(make_request({9, 8, 7, 6, 5}, 28)));  // needs the whole pool
    EXPECT_EQ(all.ids.size(), 28u);
    EXPECT_EQ(all.finish, FinishReason::kLength);
  }
}

TEST(Engine, CancelMidwayEndsOneRequestOnly) {
  RigOptions options;
  options.gate = std::make_shared<StepGate>(3);
  Rig rig(options);
  const Request kept = make_request(iota_prompt(3, 6), 30);
  const auto cancelled = rig.submit(make_request(iota_prompt(50, 6), 400));
  const auto other = rig.submit(kept);
  ASSERT_TRUE(cancelled->next().has_value());
  options.gate->wait_for_step(4);
  cancelled->cancel();
  options.gate->open();
  const Collected output = collect(*cancelled);
  EXPECT_EQ(output.finish, FinishReason::kCancelled);
  EXPECT_TRUE(output.error.ok());
  EXPECT_LT(output.ids.size(), 10u);
  EXPECT_EQ(collect(*other).ids, scripted_ids(make_hash_script(kFirstPieceId), kept));
  cancelled->cancel();  // a second one changes nothing
  EXPECT_FALSE(cancelled->next().has_value());
}

TEST(Engine, ACancelledRequestStillReportsWhatItUsed) {
  RigOptions options;
  options.gate = std::make_shared<StepGate>(3);
  Rig rig(options);
  const auto stream = rig.submit(make_request(iota_prompt(50, 6), 400));
  Collected output;
  while (output.ids.size() < 3) output.add(*stream->next());
  stream->cancel();
  options.gate->open();
  while (const auto event = stream->next()) output.add(*event);
  EXPECT_EQ(output.finish, FinishReason::kCancelled);
  EXPECT_EQ(output.timings.num_prompt_tokens, 6);
  EXPECT_EQ(output.timings.num_output_tokens, static_cast<int32_t>(output.ids.size()));
}

TEST(Engine, DroppingAStreamGivesItsRoomToTheNext) {
  RigOptions options;
  options.max_batch = 1;
  options.gate = std::make_shared<StepGate>(2);
  Rig rig(options);
  auto dropped = rig.submit(make_request(iota_prompt(50, 6), 500));
  const Request next = make_request(iota_prompt(3, 6), 5);
  const auto waiting = rig.submit(next);
  options.gate->wait_for_step(3);
  dropped.reset();
  options.gate->open();
  EXPECT_EQ(collect(*waiting).ids, scripted_ids(make_hash_script(kFirstPieceId), next));
  rig.engine.reset();
  EXPECT_LT(rig.executor->plans().size(), 30u);  // not the 500 steps of the dropped one
}

TEST(Engine, ShutdownEndsRunningWaitingAndUnreadRequests) {
  RigOptions options;
  options.max_batch = 1;
  options.gate = std::make_shared<StepGate>(2);
  Rig rig(options);
  std::vector<std::unique_ptr<Stream>> streams;
  streams.push_back(rig.submit(make_request(iota_prompt(50, 6), 500)));  // runs
  streams.push_back(rig.submit(make_request(iota_prompt(3, 6), 5)));     // waits in the scheduler
  options.gate->wait_for_step(3);
  streams.push_back(rig.submit(make_request(iota_prompt(3, 6), 5)));  // the engine thread never gets to see it
  Engine* engine = rig.engine.release();
  std::thread destroyer([engine] { delete engine; });
  // Shutdown has begun when submit refuses; the destructor cannot be over, as the gate holds the engine thread.
  for (;;) {
    auto late = engine->submit(make_request({5}, 1));
    if (!late.ok()) {
      EXPECT_EQ(late.status().code(), StatusCode::kFailedPrecondition);
      break;
    }
    streams.push_back(std::move(late).value());
    std::this_thread::yield();
  }
  options.gate->open();
  destroyer.join();
  for (const auto& stream : streams) EXPECT_EQ(collect(*stream).finish, FinishReason::kCancelled);
  streams.front()->cancel();  // streams outlive the engine
}

TEST(Engine, AFullQueueRefusesAndTakesRequestsAgainLater) {
  RigOptions options;
  options.max_batch = 1;
  options.max_queued_requests = 3;
  options.gate = std::make_shared<StepGate>(0);
  Rig rig(options);
  std::vector<std::unique_ptr<Stream>> streams;
  streams.push_back(rig.submit(make_request({5, 6}, 4)));
  options.gate->wait_for_step(1);
  for (int i = 0; i < 3; ++i) streams.push_back(rig.submit(make_request({5, 6}, 4)));
  const auto refused = rig.engine->submit(make_request({5, 6}, 4));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.status().message().find("3"), std::string_view::npos);
  // Waiting in the scheduler counts too: a step later the queue is as full as before.
  options.gate->allow(1);
  options.gate->wait_for_step(2);
  EXPECT_FALSE(rig.engine->submit(make_request({5, 6}, 4)).ok());
  options.gate->open();
  for (const auto& stream : streams) EXPECT_EQ(collect(*stream).ids.size(), 4u);
  EXPECT_EQ(collect(*rig.submit(make_request({5, 6}, 4))).ids.size(), 4u);
}

TEST(Engine, AFailedStepEndsItsRequestsAndTheEngineLivesOn) {
  RigOptions options;
  options.fail_at_call = 4;
  Rig rig(options);
  Request many = make_request(iota_prompt(3, 6), 50);
  many.sampling.num_choices = 3;
  const auto failing = rig.submit(many);
  const auto choices = collect_choices(*failing);
  ASSERT_EQ(choices.size(), 3u);
  int32_t num_failed = 0;
  for (const auto& [index, choice] : choices) {
    if (choice.finish != FinishReason::kError) continue;
    ++num_failed;
    EXPECT_EQ(choice.error.code(), StatusCode::kInternal);
    EXPECT_EQ(choice.error.message(), "scripted failure");
  }
  EXPECT_GE(num_failed, 1);
  const Request after = make_request(iota_prompt(90, 9), 20);
  EXPECT_EQ(collect(*rig.submit(after)).ids, scripted_ids(make_hash_script(kFirstPieceId), after));
}

TEST(Engine, EachChoiceIsTheScriptsOwnAndHasItsOwnEnd) {
  Rig rig({});
  Request request = make_request(iota_prompt(3, 21), 12, 5);
  request.sampling.num_choices = 6;
  const auto choices = collect_choices(*rig.submit(request));
  ASSERT_EQ(choices.size(), 6u);
  for (const auto& [index, choice] : choices) {
    EXPECT_EQ(choice.ids, scripted_ids(make_hash_script(kFirstPieceId), request, index)) << "choice " << index;
    EXPECT_EQ(choice.finish, FinishReason::kLength);
    EXPECT_EQ(choice.timings.num_output_tokens, 12);
    if (index > 0) EXPECT_EQ(choice.timings.num_cached_tokens, 20);  // whole blocks of the prompt
  }
}

TEST(Engine, LogprobsComeOncePerTokenUnderChunksAndPreemption) {
  RigOptions options;
  options.block_tokens = 4;
  options.num_blocks = 20;
  options.prefill_chunk = 5;
  options.max_batch = 4;
  Rig rig(options);
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<Request> requests;
  for (int32_t i = 0; i < 4; ++i) {
    Request request = make_request(iota_prompt(10 + 40 * i, 17), 40);
    request.sampling.num_logprobs = 2;
    request.sampling.num_prompt_logprobs = 3;
    request.sampling.num_choices = 1 + i % 2;
    requests.push_back(request);
    streams.push_back(rig.submit(request));
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    for (const auto& [index, output] : collect_choices(*streams[i])) {
      ASSERT_EQ(output.ids.size(), 40u);
      ASSERT_EQ(output.logprobs.size(), 40u);
      for (size_t k = 0; k < 40; ++k) {
        EXPECT_EQ(output.logprobs[k].token.id, output.ids[k]);
        EXPECT_EQ(output.logprobs[k].token.logprob, ScriptedExecutor::logprob_of(output.ids[k]));
        EXPECT_EQ(output.logprobs[k].top.size(), 2u);
      }
      ASSERT_EQ(output.prompt_logprobs.size(), index == 0 ? 16u : 0u);
      for (size_t k = 0; k < output.prompt_logprobs.size(); ++k) {
        EXPECT_EQ(output.prompt_logprobs[k].token.id, requests[i].prompt_ids[k + 1]);
        EXPECT_EQ(output.prompt_logprobs[k].top.size(), 3u);
      }
    }
  }
  EXPECT_GE(rig.num_resumed(), 1);
}

TEST(Engine, B60_APromptTheContextCannotHoldIsRefusedWithBothNumbers) {
  RigOptions options;
  options.max_context = 64;
  Rig rig(options);
  for (const int32_t length : {64, 65, 70}) {
    const auto refused = rig.engine->submit(make_request(iota_prompt(3, length), 8));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(refused.status().message().find(std::to_string(length)), std::string_view::npos);
    EXPECT_NE(refused.status().message().find("64"), std::string_view::npos);
  }
  const Collected fits = collect(*rig.submit(make_request(iota_prompt(3, 60), 8)));
  EXPECT_EQ(fits.ids.size(), 4u);
  EXPECT_EQ(fits.finish, FinishReason::kLength);
  EXPECT_EQ(fits.timings.num_prompt_tokens, 60);
}

TEST(Engine, ARequestThatNeedsMoreThanTheWholeCacheEndsWithTheReason) {
  RigOptions options;
  options.num_blocks = 4;
  Rig rig(options);
  const Collected output = collect(*rig.submit(make_request(iota_prompt(3, 30), 8)));
  EXPECT_EQ(output.finish, FinishReason::kError);
  EXPECT_EQ(output.error.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(output.error.message().find("KV cache too small"), std::string_view::npos);
}

TEST(Engine, BadRequestsAreRefusedByField) {
  Rig rig({});
  const auto message_of = [&](Request request) {
    const auto result = rig.engine->submit(std::move(request));
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
    return std::string(result.status().message());
  };
  EXPECT_EQ(message_of(make_request({}, 1)), "the prompt has no tokens");
  EXPECT_NE(message_of(make_request({5, 9999}, 1)).find("prompt_ids[1] = 9999"), std::string::npos);
  EXPECT_NE(message_of(make_request({5, -1}, 1)).find("prompt_ids[1] = -1"), std::string::npos);
  Request request = make_request({5}, 1);
  request.sampling.top_p = 0.0f;
  EXPECT_NE(message_of(request).find("top_p"), std::string::npos);
}

TEST(Engine, TimingsAddUpAndCountCachedTokens) {
  Rig rig({});
  const Request request = make_request(iota_prompt(3, 33), 10);
  const Collected first = collect(*rig.submit(request));
  const Collected second = collect(*rig.submit(request));
  EXPECT_EQ(first.timings.num_cached_tokens, 0);
  EXPECT_EQ(second.timings.num_cached_tokens, 32);
  EXPECT_EQ(first.ids, second.ids);
  for (const RequestTimings& t : {first.timings, second.timings}) {
    EXPECT_GE(t.queued_ms, 0.0);
    EXPECT_GE(t.prefill_ms, 0.0);
    EXPECT_GE(t.decode_ms, 0.0);
    EXPECT_LT(t.queued_ms + t.prefill_ms + t.decode_ms, 60e3);
    EXPECT_EQ(t.num_prompt_tokens, 33);
    EXPECT_EQ(t.num_output_tokens, 10);
  }
}

TEST(Engine, ASlowReaderLosesNothing) {
  Rig rig({});
  const Request request = make_request(iota_prompt(3, 5), 450);
  const auto slow = rig.submit(request);
  const Request quick = make_request(iota_prompt(3, 5), 451);  // ends after the slow one
  collect(*rig.submit(quick));
  const Collected output = collect(*slow);
  EXPECT_EQ(output.ids, scripted_ids(make_hash_script(kFirstPieceId), request));
  EXPECT_LE(output.deltas.size(), 66u);
}

}  // namespace
}  // namespace pagoda
