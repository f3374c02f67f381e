#pragma once
// What the subcommands share: exit codes, error output, Ctrl-C, the progress bar, options of models and of sampling.

#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "engine/serving_model.h"
#include "pagoda/request.h"

namespace pagoda::cli {

// 0: done; 1: it failed; 2: the command line was wrong; 130: Ctrl-C.
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

/// Prints the status (as {"error": {...}} on standard output with `json`, as text on standard error without) and gives
/// the exit code.
int report_failure(const Status& status, bool json);

/// Bytes of a file, or of standard input for "-". At most 1 GiB.
Result<std::string> read_text_file(const std::string& path);

/// Calls a handler on Ctrl-C (SIGINT) and SIGTERM; the second one ends the process at once.
/// Made in main before any other thread, so that every thread inherits the blocked signals.
class InterruptWatcher {
 public:
  InterruptWatcher();
  ~InterruptWatcher();
  void set_handler(std::function<void()> handler);
  bool is_interrupted() const { return interrupted_.load(); }
  void clear() { interrupted_.store(false); }

 private:
  void watch();
  std::mutex mutex_;
  std::function<void()> handler_;  // guarded by mutex_
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};
InterruptWatcher& interrupts();

/// One line on standard error that redraws itself; silent when that is no terminal.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ~ProgressBar() { clear(); }
  void update(uint64_t done, uint64_t total);
  void clear();

 private:
  const std::string label_;
  const bool is_terminal_;
  int last_percent_ = -1;
};

struct ModelOptions {
  std::string path;
  int threads = 0;
  EngineOptions engine;
  std::string kv_type = "f16";
  std::string attention = "flash";

  void add_to(CLI::App& app);
  /// Engine options with the names resolved (CLI11 has checked them).
  EngineOptions engine_options() const;
  /// Loads with a progress bar that Ctrl-C cancels.
  Result<std::unique_ptr<ServingModel>> load() const;
};

struct SamplingOptions {
  std::optional<float> temperature, top_p, min_p, repetition_penalty;
  std::optional<int32_t> top_k;
  float presence_penalty = 0, frequency_penalty = 0;
  std::vector<std::string> logit_bias;
  uint64_t seed = 0;
  int32_t max_tokens = 0, min_tokens = 0, num_choices = 1;
  bool ignore_eos = false;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_ids;

  void add_to(CLI::App& app);
  /// Flags first, then the file's general.sampling.*, then temperature 0.8 and top-p 0.95.
  Result<SamplingParams> resolve(const GgufFile& file) const;
};

struct ChatOptions {
  std::string system;
  std::string template_file;
  void add_to(CLI::App& app);
};

/// The conversation as token ids: the file's template (or the given one) rendered and encoded.
Result<std::string> chat_template_source(const GgufFile& file, const std::string& template_file);
struct RenderedChat {
  std::string text;
  std::vector<int32_t> ids;
};
struct ChatRequest {
  JsonValue messages;
  JsonValue tools;
  bool add_generation_prompt = true;
};
Result<RenderedChat> render_chat(const std::string& template_source, const ChatRequest& request, const Tokenizer& tokenizer);
JsonValue make_message(const std::string& role, const std::string& content);

}  // namespace pagoda::cli
