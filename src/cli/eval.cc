// pagoda eval perplexity: how well a model predicts a text, computed as llama-perplexity does: chunks of 512 tokens, the
// first replaced by BOS where the file asks for one, the second half of each chunk scored.

#include <fmt/format.h>

#include <cmath>
#include <deque>
#include <iostream>

#include "cli/common.h"
#include "cli/eval.h"

namespace pagoda::cli {

namespace {

struct PerplexityOptions {
  ModelOptions model;
  std::string text_file;
  int32_t chunk = 512;
  int32_t max_chunks = 0;
  bool json = false;
};

struct Score {
  double sum = 0;          // of -log p
  double sum_squares = 0;
  int64_t count = 0;

  void add(double nll) {
    sum += nll;
    sum_squares += nll * nll;
    ++count;
  }
  double perplexity() const { return std::exp(sum / static_cast<double>(count)); }
  double standard_error() const {
    const double n = static_cast<double>(count);
    const double variance = sum_squares / n - (sum / n) * (sum / n);
    return perplexity() * std::sqrt(std::max(variance, 0.0) / (n - 1));
  }
};

Result<std::unique_ptr<Stream>> submit_chunk(Engine& engine, const std::vector<int32_t>& ids, size_t begin, int32_t length,
                                             const TokenizerSpec& spec) {
  Request request;
  request.prompt_ids.assign(ids.begin() + static_cast<ptrdiff_t>(begin), ids.begin() + static_cast<ptrdiff_t>(begin) + length);
  if (spec.add_bos && spec.bos_id) request.prompt_ids[0] = *spec.bos_id;
  request.sampling.temperature = 0;
  request.sampling.max_tokens = 1;
  request.sampling.num_prompt_logprobs = 0;
  return engine.submit(std::move(request));
}

Result<Score> score_text(const PerplexityOptions& o, ServingModel& model) {
  PAGODA_ASSIGN_OR_RETURN(const std::string text, read_text_file(o.text_file));
  const std::vector<int32_t> ids = model.tokenizer().encode(text, EncodeOptions());
  auto num_chunks = static_cast<int32_t>(ids.size() / static_cast<size_t>(o.chunk));
  if (o.max_chunks > 0) num_chunks = std::min(num_chunks, o.max_chunks);
  if (ids.size() < 2 * static_cast<size_t>(o.chunk)) {
    return invalid_argument(o.text_file + ": has " + std::to_string(ids.size()) + " tokens, perplexity needs at least " +
                            std::to_string(2 * o.chunk));
  }
  EngineOptions options = o.model.engine_options();
  options.enable_prefix_cache = false;
  if (options.context == 0) options.context = o.chunk + 16;
  if (options.max_batch == 0) options.max_batch = 2;
  PAGODA_ASSIGN_OR_RETURN(const auto engine, model.make_engine(options));
  ProgressBar bar("scoring");
  Score score;
  std::deque<std::unique_ptr<Stream>> waiting;
  for (int32_t submitted = 0, done = 0; done < num_chunks; ++done) {
    for (; submitted < num_chunks && waiting.size() < 2; ++submitted) {  // two in flight keep the engine busy
      PAGODA_ASSIGN_OR_RETURN(auto stream, submit_chunk(*engine, ids, static_cast<size_t>(submitted) * o.chunk, o.chunk,
                                                        model.tokenizer().spec()));
      waiting.push_back(std::move(stream));
    }
    int32_t position = 0;
    while (auto event = waiting.front()->next()) {
      if (event->finish == FinishReason::kError) return event->error;
      for (const TokenLogprobs& entry : event->prompt_logprobs) {
        if (++position > o.chunk / 2) score.add(-static_cast<double>(entry.token.logprob));
      }
    }
    waiting.pop_front();
    bar.update(static_cast<uint64_t>(done) + 1, static_cast<uint64_t>(num_chunks));
    if (interrupts().is_interrupted()) return cancelled("interrupted");
  }
  return score;
}

int run_perplexity(const PerplexityOptions& o) {
  auto model = o.model.load();
  if (!model.ok()) return report_failure(model.status(), o.json);
  const auto score = score_text(o, **model);
  if (!score.ok()) return report_failure(score.status(), o.json);
  if (o.json) {
    JsonWriter w;
    w.begin_object();
    w.field("perplexity", score->perplexity());
    w.field("standard_error", score->standard_error());
    w.field("scored_tokens", score->count);
    w.field("chunk", o.chunk);
    w.end_object();
    std::cout << w.text() << std::endl;
  } else {
    std::cout << fmt::format("perplexity {:.4f} +/- {:.4f} over {} tokens\n", score->perplexity(), score->standard_error(),
                             score->count);
  }
  return 0;
}

}  // namespace

void add_eval(CLI::App& program, Action& action) {
  CLI::App* eval = program.add_subcommand("eval", "measure a model's quality");
  eval->require_subcommand(1);
  auto o = std::make_shared<PerplexityOptions>();
  CLI::App* app = eval->add_subcommand("perplexity", "perplexity of a text, comparable with llama-perplexity");
  o->model.add_to(*app);
  app->add_option("-f,--file", o->text_file, "text to score; - is standard input")->required();
  app->add_option("--chunk", o->chunk, "tokens of a chunk; the second half is scored")->check(CLI::Range(16, 65536))->capture_default_str();
  app->add_option("--chunks", o->max_chunks, "score only this many chunks")->check(CLI::Range(0, 1 << 20));
  app->add_flag("--json", o->json, "the result as a JSON object");
  app->callback([o, &action] { action = [o] { return run_perplexity(*o); }; });
  add_divergence(*eval, action);
}

}  // namespace pagoda::cli
