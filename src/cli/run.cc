// pagoda run: prompts in, text (or JSON lines) out.

#include <cstdio>
#include <iostream>

#include "cli/common.h"
#include "cli/subcommands.h"

namespace pagoda::cli {

namespace {

struct RunOptions {
  ModelOptions model;
  SamplingOptions sampling;
  ChatOptions chat;
  std::string prompt, prompt_file, prompts_file;
  bool use_chat = false;
  bool json = false;
  int32_t num_logprobs = -1, num_prompt_logprobs = -1;
};

struct Prompt {
  std::vector<int32_t> ids;
  std::optional<int32_t> max_tokens;
};

/// What one prompt gave, all choices.
struct Output {
  struct Choice {
    std::string text;
    std::vector<int32_t> ids;
    std::vector<TokenLogprobs> logprobs;
    FinishReason finish = FinishReason::kNone;
    RequestTimings timings;
  };
  std::vector<Choice> choices;
  std::vector<TokenLogprobs> prompt_logprobs;
  Status error;
};

Result<Prompt> prompt_from_text(const std::string& text, const RunOptions& o, const ServingModel& m) {
  if (!o.use_chat) return Prompt{m.tokenizer().encode(text, EncodeOptions()), {}};
  PAGODA_ASSIGN_OR_RETURN(const std::string source, chat_template_source(m.file(), o.chat.template_file));
  JsonArray messages;
  if (!o.chat.system.empty()) messages.push_back(make_message("system", o.chat.system));
  messages.push_back(make_message("user", text));
  ChatRequest request;
  request.messages = JsonValue(JsonValue::Data(std::move(messages)));
  PAGODA_ASSIGN_OR_RETURN(RenderedChat rendered, render_chat(source, request, m.tokenizer()));
  return Prompt{std::move(rendered.ids), {}};
}

Result<Prompt> prompt_from_json(const JsonValue& line, const RunOptions& o, const ServingModel& m) {
  if (!line.is_object()) return invalid_argument("a line must be a JSON object");
  for (const auto& [key, value] : *line.as_object()) {
    if (key != "prompt" && key != "prompt_ids" && key != "max_tokens") {
      return invalid_argument("unknown field " + json_quote(key) + "; known are prompt, prompt_ids, max_tokens");
    }
  }
  const JsonValue* text = line.find("prompt");
  const JsonValue* ids = line.find("prompt_ids");
  if ((text == nullptr) == (ids == nullptr)) return invalid_argument("give either prompt or prompt_ids");
  Prompt prompt;
  if (text != nullptr) {
    if (!text->is_string()) return invalid_argument("prompt must be a string");
    PAGODA_ASSIGN_OR_RETURN(prompt, prompt_from_text(*text->as_string(), o, m));
  } else {
    if (!ids->is_array()) return invalid_argument("prompt_ids must be an array of token ids");
    for (const JsonValue& id : *ids->as_array()) {
      const auto n = id.as_int();
      if (!n || *n < 0 || *n >= m.tokenizer().vocab_size()) return invalid_argument("prompt_ids holds a value that is no token id");
      prompt.ids.push_back(static_cast<int32_t>(*n));
    }
  }
  if (const JsonValue* max_tokens = line.find("max_tokens")) {
    const auto n = max_tokens->as_int();
    if (!n || *n < 1 || *n > (1 << 26)) return invalid_argument("max_tokens must be an integer of at least 1");
    prompt.max_tokens = static_cast<int32_t>(*n);
  }
  return prompt;
}

Result<std::vector<Prompt>> read_prompts(const RunOptions& o, const ServingModel& m) {
  std::vector<Prompt> prompts;
  if (o.prompts_file.empty()) {
    std::string text = o.prompt;
    if (!o.prompt_file.empty()) {
      PAGODA_ASSIGN_OR_RETURN(text, read_text_file(o.prompt_file));
    }
    PAGODA_ASSIGN_OR_RETURN(Prompt prompt, prompt_from_text(text, o, m));
    prompts.push_back(std::move(prompt));
    return prompts;
  }
  PAGODA_ASSIGN_OR_RETURN(const std::string lines, read_text_file(o.prompts_file));
  size_t begin = 0;
  for (int number = 1; begin < lines.size(); ++number) {
    const size_t end = std::min(lines.find('\n', begin), lines.size());
    const std::string_view line = std::string_view(lines).substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = o.prompts_file + ", line " + std::to_string(number);
    auto json = parse_json(line);
    if (!json.ok()) return json.status().with_context(where);
    auto prompt = prompt_from_json(*json, o, m);
    if (!prompt.ok()) return prompt.status().with_context(where);
    prompts.push_back(std::move(*prompt));
  }
  if (prompts.empty()) return invalid_argument(o.prompts_file + ": holds no prompt");
  return prompts;
}

void write_logprobs(JsonWriter& w, const TokenLogprobs& entry) {
  w.begin_object();
  w.field("id", entry.token.id);
  w.field("logprob", entry.token.logprob);
  w.key("top");
  w.begin_array();
  for (const TokenLogprob& top : entry.top) {
    w.begin_object();
    w.field("id", top.id);
    w.field("logprob", top.logprob);
    w.end_object();
  }
  w.end_array();
  w.end_object();
}

void write_ids(JsonWriter& w, std::string_view name, const std::vector<int32_t>& ids) {
  w.key(name);
  w.begin_array();
  for (const int32_t id : ids) w.value(id);
  w.end_array();
}

void write_choice(JsonWriter& w, const Output::Choice& c, double load_ms) {
  write_ids(w, "ids", c.ids);
  w.field("text", std::string_view(c.text));
  w.field("finish_reason", finish_reason_name(c.finish));
  w.key("logprobs");
  w.begin_array();
  for (const TokenLogprobs& entry : c.logprobs) write_logprobs(w, entry);
  w.end_array();
  const RequestTimings& t = c.timings;
  const auto rate = [](double count, double ms) { return ms > 0 ? count * 1000.0 / ms : 0.0; };
  w.key("timings");
  w.begin_object();
  w.field("load_ms", load_ms);
  w.field("queued_ms", t.queued_ms);
  w.field("prefill_ms", t.prefill_ms);
  w.field("decode_ms", t.decode_ms);
  w.field("prompt_tokens", t.num_prompt_tokens);
  w.field("cached_tokens", t.num_cached_tokens);
  w.field("prefill_tokens_per_s", rate(t.num_prompt_tokens - t.num_cached_tokens, t.prefill_ms));
  w.field("decode_tokens_per_s", rate(std::max(t.num_output_tokens - 1, 0), t.decode_ms));
  w.field("decode_chars_per_s", rate(static_cast<double>(c.text.size()), t.decode_ms));
  w.end_object();
}

std::string to_json(const Prompt& prompt, const Output& output, const RunOptions& o, double load_ms) {
  JsonWriter w;
  w.begin_object();
  write_ids(w, "prompt_ids", prompt.ids);
  write_choice(w, output.choices[0], load_ms);
  w.key("prompt_logprobs");
  w.begin_array();
  if (o.num_prompt_logprobs >= 0) w.null();  // nothing predicts the first token
  for (const TokenLogprobs& entry : output.prompt_logprobs) write_logprobs(w, entry);
  w.end_array();
  if (output.choices.size() > 1) {
    w.key("choices");
    w.begin_array();
    for (const Output::Choice& c : output.choices) {
      w.begin_object();
      write_choice(w, c, load_ms);
      w.end_object();
    }
    w.end_array();
  }
  w.end_object();
  return w.take();
}

/// Reads a stream to its end. `print`: the text goes to standard output as it comes.
Output collect(Stream& stream, const Prompt& prompt, int32_t num_choices, bool print) {
  Output output;
  output.choices.resize(num_choices);
  ProgressBar bar("prefill");
  while (auto event = stream.next()) {
    Output::Choice& choice = output.choices[event->choice_idx];
    if (prompt.ids.size() > 512 && choice.ids.empty() && event->ids.empty()) {
      bar.update(static_cast<uint64_t>(event->prompt_tokens_done), prompt.ids.size());
    } else {
      bar.clear();
    }
    choice.text += event->text;
    choice.ids.insert(choice.ids.end(), event->ids.begin(), event->ids.end());
    for (TokenLogprobs& entry : event->logprobs) choice.logprobs.push_back(std::move(entry));
    for (TokenLogprobs& entry : event->prompt_logprobs) output.prompt_logprobs.push_back(std::move(entry));
    if (event->finish != FinishReason::kNone) {
      choice.finish = event->finish;
      choice.timings = event->timings;
      if (event->finish == FinishReason::kError) output.error = event->error;
    }
    if (print) std::cout << event->text << std::flush;
  }
  return output;
}

void print_text(const Output& output, size_t index, size_t num_prompts) {
  for (size_t c = 0; c < output.choices.size(); ++c) {
    if (num_prompts > 1 || output.choices.size() > 1) {
      std::cout << "--- prompt " << index + 1 << ", choice " << c + 1 << "\n";
    }
    std::cout << output.choices[c].text << "\n";
  }
}

Result<int> run(RunOptions& o) {
  PAGODA_ASSIGN_OR_RETURN(const auto model, o.model.load());
  PAGODA_ASSIGN_OR_RETURN(const std::vector<Prompt> prompts, read_prompts(o, *model));
  PAGODA_ASSIGN_OR_RETURN(SamplingParams sampling, o.sampling.resolve(model->file()));
  sampling.num_logprobs = o.num_logprobs;
  sampling.num_prompt_logprobs = o.num_prompt_logprobs;
  EngineOptions engine_options = o.model.engine_options();
  const auto num_sequences = static_cast<int64_t>(prompts.size()) * std::max(sampling.num_choices, 1);
  if (engine_options.max_batch == 0) engine_options.max_batch = static_cast<int32_t>(std::min<int64_t>(num_sequences, 16));
  PAGODA_ASSIGN_OR_RETURN(const auto engine, model->make_engine(engine_options));

  std::vector<std::unique_ptr<Stream>> streams;
  for (size_t i = 0; i < prompts.size(); ++i) {
    Request request;
    request.prompt_ids = prompts[i].ids;
    request.sampling = sampling;
    if (prompts[i].max_tokens) request.sampling.max_tokens = *prompts[i].max_tokens;
    auto stream = engine->submit(std::move(request));
    if (!stream.ok()) return stream.status().with_context("prompt " + std::to_string(i + 1));
    streams.push_back(std::move(*stream));
  }
  interrupts().set_handler([&streams] {
    for (const auto& stream : streams) stream->cancel();
  });
  const bool live = !o.json && prompts.size() == 1 && sampling.num_choices == 1;
  int exit_code = 0;
  for (size_t i = 0; i < streams.size(); ++i) {
    const Output output = collect(*streams[i], prompts[i], sampling.num_choices, live);
    if (!output.error.ok()) exit_code = report_failure(output.error.with_context("prompt " + std::to_string(i + 1)), o.json);
    if (o.json && output.error.ok()) {
      std::cout << to_json(prompts[i], output, o, model->load_ms()) << std::endl;
    } else if (live) {
      std::cout << std::endl;
    } else if (!o.json) {
      print_text(output, i, prompts.size());
    }
  }
  interrupts().set_handler({});
  return interrupts().is_interrupted() ? kExitInterrupted : exit_code;
}

}  // namespace

void add_run(CLI::App& program, Action& action) {
  auto o = std::make_shared<RunOptions>();
  CLI::App* app = program.add_subcommand("run", "generate text for one prompt, or for a file of prompts as one batch");
  o->model.add_to(*app);
  auto* source = app->add_option_group("prompt", "where the prompt comes from (one of them)");
  source->add_option("-p,--prompt", o->prompt, "the prompt");
  source->add_option("-f,--file", o->prompt_file, "file with the prompt; - is standard input");
  source->add_option("--prompts", o->prompts_file,
                     "JSONL file, a prompt a line: {\"prompt\": TEXT | \"prompt_ids\": [...], \"max_tokens\": N}");
  source->require_option(1);
  app->add_flag("--chat", o->use_chat, "put the prompt into the model's chat template as the user's message");
  o->chat.add_to(*app);
  o->sampling.add_to(*app);
  app->add_option("--logprobs", o->num_logprobs, "log-probabilities of output tokens and of the K most likely beside each")
      ->check(CLI::Range(0, 100));
  app->add_option("--prompt-logprobs", o->num_prompt_logprobs, "the same for prompt tokens")->check(CLI::Range(0, 100));
  app->add_flag("--json", o->json, "one JSON object a line for each prompt, in order");
  app->callback([o, &action] {
    action = [o] {
      const auto code = run(*o);
      return code.ok() ? *code : report_failure(code.status(), o->json);
    };
  });
}

}  // namespace pagoda::cli
