// pagoda chat: a conversation in the terminal. The whole conversation is sent each turn; the prefix cache makes that cheap.

#include <readline/history.h>
#include <readline/readline.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "cli/common.h"
#include "cli/subcommands.h"

namespace pagoda::cli {

namespace {

constexpr const char* kHelp =
    "/help            this list\n"
    "/reset           forget the conversation\n"
    "/system TEXT     set the system message and forget the conversation\n"
    "/seed N          seed of the random draws\n"
    "/temp T          temperature, 0 is greedy\n"
    "/stats           speed of the last answer\n"
    "/quit            leave (so does Ctrl-D); Ctrl-C stops an answer\n";

struct Session {
  ServingModel& model;
  Engine& engine;
  std::string template_source;
  SamplingParams sampling;
  std::string system;
  JsonArray turns;
  RequestTimings last;

  JsonValue conversation() const {
    JsonArray messages;
    if (!system.empty()) messages.push_back(make_message("system", system));
    messages.insert(messages.end(), turns.begin(), turns.end());
    return JsonValue(JsonValue::Data(std::move(messages)));
  }
};

// Reads a line with editing and history on a terminal, plainly otherwise. nullopt at the end of input.
std::optional<std::string> read_line() {
  if (isatty(STDIN_FILENO) != 1) {
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
  }
  char* raw = readline("> ");
  if (raw == nullptr) return std::nullopt;
  std::string line = raw;
  std::free(raw);
  if (!line.empty()) add_history(line.c_str());
  return line;
}

Status answer(Session& s, const std::string& text) {
  s.turns.push_back(make_message("user", text));
  ChatRequest chat;
  chat.messages = s.conversation();
  auto rendered = render_chat(s.template_source, chat, s.model.tokenizer());
  if (!rendered.ok()) {
    s.turns.pop_back();
    return rendered.status();
  }
  Request request;
  request.prompt_ids = std::move(rendered->ids);
  request.sampling = s.sampling;
  auto stream = s.engine.submit(std::move(request));
  if (!stream.ok()) {
    s.turns.pop_back();
    return stream.status();
  }
  interrupts().set_handler([&] { (*stream)->cancel(); });
  std::string reply;
  Status error;
  while (auto event = (*stream)->next()) {
    std::cout << event->text << std::flush;
    reply += event->text;
    if (event->finish != FinishReason::kNone) s.last = event->timings;
    if (event->finish == FinishReason::kError) error = event->error;
  }
  interrupts().set_handler({});
  interrupts().clear();
  std::cout << std::endl;
  s.turns.push_back(make_message("assistant", reply));
  return error;
}

// False: leave.
bool handle_command(Session& s, const std::string& line) {
  const size_t space = line.find(' ');
  const std::string name = line.substr(0, space);
  const std::string argument = space == std::string::npos ? "" : line.substr(space + 1);
  if (name == "/quit" || name == "/exit") return false;
  if (name == "/help") {
    std::cout << kHelp;
  } else if (name == "/reset") {
    s.turns.clear();
  } else if (name == "/system") {
    s.system = argument;
    s.turns.clear();
  } else if (name == "/seed") {
    s.sampling.seed = std::strtoull(argument.c_str(), nullptr, 10);
  } else if (name == "/temp") {
    SamplingParams changed = s.sampling;
    changed.temperature = std::strtof(argument.c_str(), nullptr);
    const Status status = validate(changed, s.model.tokenizer().vocab_size());
    if (status.ok()) s.sampling = changed;
    if (!status.ok()) std::cout << status.message() << "\n";
  } else if (name == "/stats") {
    std::cout << s.last.num_prompt_tokens << " prompt tokens (" << s.last.num_cached_tokens << " cached) in "
              << s.last.prefill_ms << " ms, " << s.last.num_output_tokens << " tokens in " << s.last.decode_ms << " ms\n";
  } else {
    std::cout << "unknown command " << name << "\n" << kHelp;
  }
  return true;
}

struct ChatCommand {
  ModelOptions model;
  SamplingOptions sampling;
  ChatOptions chat;
};

Status talk(const ChatCommand& o) {
  PAGODA_ASSIGN_OR_RETURN(const auto model, o.model.load());
  PAGODA_ASSIGN_OR_RETURN(std::string source, chat_template_source(model->file(), o.chat.template_file));
  PAGODA_ASSIGN_OR_RETURN(const SamplingParams sampling, o.sampling.resolve(model->file()));
  EngineOptions options = o.model.engine_options();
  if (options.max_batch == 0) options.max_batch = 1;
  PAGODA_ASSIGN_OR_RETURN(const auto engine, model->make_engine(options));
  Session session{*model, *engine, std::move(source), sampling, o.chat.system, {}, {}};
  if (isatty(STDIN_FILENO) == 1) std::cout << model->model().config().name << ": type a message, or /help\n";
  while (auto line = read_line()) {
    if (line->empty()) continue;
    if (line->front() == '/') {
      if (!handle_command(session, *line)) break;
      continue;
    }
    const Status status = answer(session, *line);
    if (!status.ok()) report_failure(status, false);
  }
  return {};
}

}  // namespace

void add_chat(CLI::App& program, Action& action) {
  auto o = std::make_shared<ChatCommand>();
  CLI::App* app = program.add_subcommand("chat", "talk with a model");
  o->model.add_to(*app);
  o->chat.add_to(*app);
  o->sampling.add_to(*app);
  app->callback([o, &action] {
    action = [o] {
      const Status status = talk(*o);
      return status.ok() ? 0 : report_failure(status, false);
    };
  });
}

}  // namespace pagoda::cli
