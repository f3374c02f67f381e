#include "engine/output_processor.h"

#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"

namespace pagoda {
namespace {

constexpr int32_t kEos = 2;
constexpr int32_t kFirstByte = 3;
constexpr int32_t kFirstPiece = kFirstByte + 256;

/// <unk> <s> </s>, the 256 byte tokens, then the given pieces.
std::unique_ptr<Tokenizer> make_tokenizer(const std::vector<std::string>& pieces) {
  TokenizerSpec spec;
  spec.model = TokenizerModel::kSentencePieceBpe;
  spec.byte_fallback = true;
  spec.normalizer.escape_spaces = true;
  spec.normalizer.add_space_prefix = true;
  spec.tokens = {
      {"<unk>", 0.0f, TokenType::kUnknown}, {"<s>", 0.0f, TokenType::kControl}, {"</s>", 0.0f, TokenType::kControl}};
  for (int byte = 0; byte < 256; ++byte) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    spec.tokens.push_back({std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", 0.0f, TokenType::kByte});
  }
  for (const std::string& piece : pieces) spec.tokens.push_back({piece, -1.0f, TokenType::kNormal});
  spec.unk_id = 0;
  spec.bos_id = 1;
  spec.eos_id = kEos;
  auto tokenizer = Tokenizer::create(std::move(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  return std::move(tokenizer).value();
}

std::vector<int32_t> byte_ids(std::string_view bytes) {
  std::vector<int32_t> ids;
  for (const char byte : bytes) ids.push_back(kFirstByte + static_cast<uint8_t>(byte));
  return ids;
}

struct Output {
  std::vector<std::string> deltas;
  std::vector<int32_t> ids;
  std::vector<TokenLogprobs> logprobs;
  FinishReason finish = FinishReason::kNone;

  std::string text() const {
    std::string all;
    for (const std::string& delta : deltas) all += delta;
    return all;
  }
};

/// Streams ids as the scheduler would deliver them: kStop with EOS, kLength with the last one.
struct Choice {
  Choice(const Tokenizer& tokenizer, SamplingParams params, Detokenizer::Options options = {})
      : sampling(std::make_shared<const SamplingParams>(std::move(params))),
        processor(tokenizer, sampling, 3, options) {}

  Output run(const std::vector<int32_t>& tokens) {
    Output output;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const FinishReason finish = tokens[i] == kEos        ? FinishReason::kStop
                                  : i + 1 == tokens.size() ? FinishReason::kLength
                                                           : FinishReason::kNone;
      const auto event = processor.push(tokens[i], {{tokens[i], -0.5f}, {}}, finish);
      if (!event) continue;
      EXPECT_EQ(event->choice_idx, 3);
      EXPECT_EQ(output.finish, FinishReason::kNone) << "an event after the last";
      output.deltas.push_back(event->text);
      output.ids.insert(output.ids.end(), event->ids.begin(), event->ids.end());
      output.logprobs.insert(output.logprobs.end(), event->logprobs.begin(), event->logprobs.end());
      output.finish = event->finish;
    }
    EXPECT_EQ(processor.num_output_tokens(), static_cast<int32_t>(output.ids.size()));
    EXPECT_EQ(processor.is_finished(), output.finish != FinishReason::kNone);
    return output;
  }

  std::shared_ptr<const SamplingParams> sampling;
  OutputProcessor processor;
};

SamplingParams with_stops(std::vector<std::string> stops) {
  SamplingParams params;
  params.stop = std::move(stops);
  return params;
}

using Deltas = std::vector<std::string>;

TEST(OutputProcessor, B24TokensOfAStopStringAreCountedButNotSeen) {
  const auto tokenizer = make_tokenizer({"DEF", "G", "HI", "J", "K"});
  const std::vector<int32_t> ids{kFirstPiece, kFirstPiece + 1, kFirstPiece + 2, kFirstPiece + 3, kFirstPiece + 4};
  Choice match(*tokenizer, with_stops({"DEFGHIJ"}));
  const Output output = match.run(ids);
  EXPECT_EQ(output.deltas, (Deltas{"", "", "", ""}));
  EXPECT_EQ(output.finish, FinishReason::kStop);
  EXPECT_EQ(output.ids, std::vector<int32_t>(ids.begin(), ids.end() - 1));  // `K` was computed after the stop
  EXPECT_TRUE(match.processor.is_stopped_by_text());

  Choice other(*tokenizer, with_stops({"DEFGX"}));
  const Output full = other.run(ids);
  EXPECT_EQ(full.deltas, (Deltas{"", "", "DEFGHI", "J", "K"}));
  EXPECT_EQ(full.finish, FinishReason::kLength);
  EXPECT_FALSE(other.processor.is_stopped_by_text());
}

TEST(OutputProcessor, B26AStopInsideATokenCutsItsText) {
  const auto tokenizer = make_tokenizer({"a,", "b", ",c", "stop!"});
  Choice comma(*tokenizer, with_stops({"b,c"}));
  EXPECT_EQ(comma.run({kFirstPiece, kFirstPiece + 1, kFirstPiece + 2}).deltas, (Deltas{"a,", "", ""}));
  Choice stop(*tokenizer, with_stops({"stop"}));
  const Output output = stop.run({kFirstPiece + 3, kFirstPiece});
  EXPECT_EQ(output.deltas, (Deltas{""}));
  EXPECT_EQ(output.ids, (std::vector<int32_t>{kFirstPiece + 3}));
  EXPECT_EQ(output.finish, FinishReason::kStop);
}

TEST(OutputProcessor, B26AnUnrelatedStopDelaysNothing) {
  const auto tokenizer = make_tokenizer({"h", "e", "l", "o"});
  Choice choice(*tokenizer, with_stops({std::string(20, 'z')}));
  EXPECT_EQ(choice.run({kFirstPiece, kFirstPiece + 1, kFirstPiece + 2, kFirstPiece + 2, kFirstPiece + 3}).deltas,
            (Deltas{"h", "e", "l", "l", "o"}));
}

TEST(OutputProcessor, EndOfGenerationAddsAnIdAndNoText) {
  const auto tokenizer = make_tokenizer({"hi", "bye"});
  SamplingParams params;
  params.num_logprobs = 0;
  Choice choice(*tokenizer, params, {.show_special = true, .strip_leading_space = false});
  const Output output = choice.run({kFirstPiece, kEos, kFirstPiece});
  EXPECT_EQ(output.text(), "hi");
  EXPECT_EQ(output.ids, (std::vector<int32_t>{kFirstPiece, kEos}));
  EXPECT_EQ(output.logprobs.size(), 2u);
  EXPECT_EQ(output.finish, FinishReason::kStop);
  EXPECT_FALSE(choice.processor.is_stopped_by_text());
  // A stop id that is an ordinary token stays out of the text as well.
  Choice stopped(*tokenizer, {});
  const auto event = stopped.processor.push(kFirstPiece + 1, {}, FinishReason::kStop);
  EXPECT_EQ(event->text, "");
  EXPECT_EQ(event->ids, (std::vector<int32_t>{kFirstPiece + 1}));
  EXPECT_TRUE(event->logprobs.empty());
}

TEST(OutputProcessor, HeldTextComesOutWithTheLastEvent) {
  const auto tokenizer = make_tokenizer({"text</", "en"});
  Choice by_eos(*tokenizer, with_stops({"</end>"}));
  EXPECT_EQ(by_eos.run({kFirstPiece, kFirstPiece + 1, kEos}).deltas, (Deltas{"text", "", "</en"}));
  Choice by_length(*tokenizer, with_stops({"</end>"}));
  EXPECT_EQ(by_length.run({kFirstPiece, kFirstPiece + 1}).deltas, (Deltas{"text", "</en"}));
  Choice cancelled(*tokenizer, with_stops({"</end>"}));
  cancelled.processor.push(kFirstPiece, {}, FinishReason::kNone);
  const auto event = cancelled.processor.end(FinishReason::kError, internal_error("broken"));
  EXPECT_EQ(event->text, "</");
  EXPECT_EQ(event->finish, FinishReason::kError);
  EXPECT_EQ(event->error.message(), "broken");
  EXPECT_TRUE(event->ids.empty());
  EXPECT_FALSE(cancelled.processor.end(FinishReason::kCancelled, {}).has_value());
  EXPECT_FALSE(cancelled.processor.push(kFirstPiece, {}, FinishReason::kNone).has_value());
}

TEST(OutputProcessor, AStopStringBeatsTheLengthLimit) {
  const auto tokenizer = make_tokenizer({"end"});
  Choice choice(*tokenizer, with_stops({"nd"}));
  const Output output = choice.run({kFirstPiece});
  EXPECT_EQ(output.text(), "e");
  EXPECT_EQ(output.finish, FinishReason::kStop);
}

TEST(OutputProcessor, B27BrokenBytesBecomeOneReplacementCharacter) {
  const auto tokenizer = make_tokenizer({"ok"});
  std::vector<int32_t> ids = byte_ids("\xF0\x9F\x27");
  ids.push_back(kFirstPiece);
  Choice choice(*tokenizer, {});
  EXPECT_EQ(choice.run(ids).text(), "\uFFFD'ok");
  Choice at_end(*tokenizer, {});
  EXPECT_EQ(at_end.run(byte_ids("a\xF0\x9F")).deltas, (Deltas{"a", "", "\uFFFD"}));
}

TEST(OutputProcessor, B28ACharacterComesWhole) {
  const auto tokenizer = make_tokenizer({});
  Choice llama(*tokenizer, {});
  EXPECT_EQ(llama.run(byte_ids("🦙")).deltas, (Deltas{"", "", "", "🦙"}));
  Choice accent(*tokenizer, {});
  EXPECT_EQ(accent.run(byte_ids("é!")).deltas, (Deltas{"", "é", "!"}));
}

TEST(OutputProcessor, B30EveryTokenKeepsItsLogprobsAndBytes) {
  const auto tokenizer = make_tokenizer({"x"});
  SamplingParams params;
  params.num_logprobs = 2;
  params.stop = {"🦙!"};
  Choice choice(*tokenizer, params);
  std::vector<int32_t> ids = byte_ids("é🦙");
  const Output output = choice.run(ids);
  ASSERT_EQ(output.logprobs.size(), ids.size());
  std::string bytes;
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(output.logprobs[i].token.id, ids[i]);
    bytes += tokenizer->token_bytes(output.logprobs[i].token.id, false);
  }
  EXPECT_EQ(bytes, output.text());
}

// Any bytes, any stops: the stream equals the repaired text cut at the first match, and is always valid UTF-8.
TEST(OutputProcessor, B24B27RandomBytesStreamAsTheRepairedTextCutAtTheFirstStop) {
  const auto tokenizer = make_tokenizer({"a", "b", "ab", "é", "\uFFFD", "🦙a"});
  const std::vector<std::string> stop_pool{"ab", "é", "\uFFFD", "ba\uFFFD", "🦙", "aéb", "bbb"};
  std::mt19937 rng(4);
  for (int round = 0; round < 4000; ++round) {
    std::vector<int32_t> ids;
    std::string bytes;
    for (size_t i = 0; i < 1 + rng() % 12; ++i) {
      const std::vector<int32_t> raw = byte_ids("\xF0\x9F\xA6\x99\xC3\xA9\xE2");
      ids.push_back(rng() % 2 == 0 ? kFirstPiece + static_cast<int32_t>(rng() % 6) : raw[rng() % raw.size()]);
      bytes += tokenizer->token_bytes(ids.back(), false);
    }
    SamplingParams params;
    for (size_t i = 0; i < rng() % 3; ++i) params.stop.push_back(stop_pool[rng() % stop_pool.size()]);
    StopMatcher whole(params.stop);
    std::string expected = whole.push(repair_utf8(bytes));
    expected += whole.finish();
    Choice choice(*tokenizer, params);
    const Output output = choice.run(ids);
    ASSERT_EQ(output.text(), expected) << round;
    ASSERT_EQ(output.finish, whole.is_stopped() ? FinishReason::kStop : FinishReason::kLength);
    for (const std::string& delta : output.deltas) ASSERT_TRUE(is_valid_utf8(delta));
  }
}

}  // namespace
}  // namespace pagoda
