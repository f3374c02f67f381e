#include "cli/common.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>

#include "chat_template/chat_template.h"

namespace pagoda::cli {

namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 30;

sigset_t interrupt_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

int report_failure(const Status& status, bool json) {
  if (json) {
    JsonWriter w;
    w.begin_object();
    w.key("error");
    w.begin_object();
    w.field("code", status_code_name(status.code()));
    w.field("message", status.message());
    w.end_object();
    w.end_object();
    std::cout << w.text() << std::endl;
  } else {
    std::cerr << "pagoda: " << status.to_string() << std::endl;
  }
  return status.code() == StatusCode::kCancelled ? kExitInterrupted : kExitFailure;
}

Result<std::string> read_text_file(const std::string& path) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file) return not_found(path + ": cannot be opened");
  }
  std::istream& in = path == "-" ? std::cin : file;
  std::string text;
  char chunk[65536];
  while (in.read(chunk, sizeof chunk) || in.gcount() > 0) {
    text.append(chunk, static_cast<size_t>(in.gcount()));
    if (text.size() > kMaxTextBytes) return resource_exhausted(path + ": longer than 1 GiB");
  }
  if (in.bad()) return internal_error(path + ": read error");
  return text;
}

InterruptWatcher::InterruptWatcher() {
  const sigset_t set = interrupt_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { watch(); });
}

InterruptWatcher::~InterruptWatcher() {
  stopping_.store(true);
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

void InterruptWatcher::watch() {
  const sigset_t set = interrupt_signals();
  int signal = 0;
  while (sigwait(&set, &signal) == 0 && !stopping_.load()) {
    if (interrupted_.exchange(true)) _exit(kExitInterrupted);
    const std::lock_guard lock(mutex_);
    if (handler_) handler_();
  }
}

void InterruptWatcher::set_handler(std::function<void()> handler) {
  const std::lock_guard lock(mutex_);
  handler_ = std::move(handler);
}

InterruptWatcher& interrupts() {
  static InterruptWatcher watcher;
  return watcher;
}

ProgressBar::ProgressBar(std::string label) : label_(std::move(label)), is_terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressBar::update(uint64_t done, uint64_t total) {
  if (!is_terminal_ || total == 0) return;
  const int percent = static_cast<int>(static_cast<double>(done) / static_cast<double>(total) * 100.0);
  if (percent == last_percent_) return;
  last_percent_ = percent;
  constexpr int kWidth = 30;
  std::string bar(static_cast<size_t>(kWidth * percent / 100), '#');
  bar.resize(kWidth, ' ');
  std::fprintf(stderr, "\r%s [%s] %3d %%", label_.c_str(), bar.c_str(), percent);
}

void ProgressBar::clear() {
  if (!is_terminal_ || last_percent_ < 0) return;
  std::fputs("\r\033[K", stderr);
  last_percent_ = -1;
}

void ModelOptions::add_to(CLI::App& app) {
  app.add_option("-m,--model", path, "model file (GGUF; any shard of a split one, or its folder)")->required();
  app.add_option("-t,--threads", threads, "compute threads (default: cores allowed by affinity and cgroup quota)")
      ->check(CLI::Range(0, 4096));
  app.add_option("--ctx", engine.context, "context length in tokens (default: as trained, at most 32768, if it fits memory)")
      ->check(CLI::Range(0, 1 << 26));
  app.add_option("--kv-type", kv_type, "type of the KV cache")->check(CLI::IsMember({"f32", "bf16", "f16"}))->capture_default_str();
  app.add_option("--attention", attention, "flash, or naive as the baseline")
      ->check(CLI::IsMember({"flash", "naive"}))->capture_default_str();
  app.add_option("--prefill-chunk", engine.prefill_chunk, "most prompt tokens computed in one step")
      ->check(CLI::Range(1, 65536))->capture_default_str();
  app.add_option("--max-batch", engine.max_batch, "most sequences computed together (default 16)")->check(CLI::Range(0, 4096));
  app.add_flag("!--no-prefix-cache", engine.enable_prefix_cache, "do not reuse the KV blocks of equal prompt beginnings");
}

EngineOptions ModelOptions::engine_options() const {
  EngineOptions options = engine;
  options.kv_type = kv_type == "f32" ? KvType::kF32 : kv_type == "bf16" ? KvType::kBF16 : KvType::kF16;
  options.attention = attention == "naive" ? AttentionKind::kNaive : AttentionKind::kFlash;
  return options;
}

Result<std::unique_ptr<ServingModel>> ModelOptions::load() const {
  ProgressBar bar("loading");
  return ServingModel::load(path, threads, [&bar](uint64_t done, uint64_t total) {
    bar.update(done, total);
    return !interrupts().is_interrupted();
  });
}

void SamplingOptions::add_to(CLI::App& app) {
  app.add_option("-n,--max-tokens", max_tokens, "most tokens to generate (default: what the context holds)")->check(CLI::Range(0, 1 << 26));
  app.add_option("--temp", temperature, "temperature; 0 is greedy (default: the file's, else 0.8)");
  app.add_option("--top-k", top_k, "keep the K most likely tokens; 0 is off (default: the file's, else off)");
  app.add_option("--top-p", top_p, "keep the most likely tokens up to this probability (default: the file's, else 0.95)");
  app.add_option("--min-p", min_p, "keep tokens of at least this share of the best one's probability (default: off)");
  app.add_option("--repetition-penalty", repetition_penalty, "divides the logits of tokens seen before; 1 is off");
  app.add_option("--presence-penalty", presence_penalty, "subtracted once from tokens in the output");
  app.add_option("--frequency-penalty", frequency_penalty, "subtracted for each occurrence in the output");
  app.add_option("--logit-bias", logit_bias, "ID=X: added to the logit of token ID; may be given again");
  app.add_option("--seed", seed, "seed of the random draws: same seed, same text")->capture_default_str();
  app.add_option("--choices", num_choices, "independent continuations of each prompt")->capture_default_str();
  app.add_option("--stop", stop, "text that ends the output; may be given again");
  app.add_option("--stop-id", stop_ids, "token id that ends the output; may be given again");
  app.add_option("--min-tokens", min_tokens, "no end before this many tokens");
  app.add_flag("--ignore-eos", ignore_eos, "the model's end tokens do not end the output");
}

namespace {

Result<std::pair<int32_t, float>> parse_bias(const std::string& text) {
  const size_t equals = text.find('=');
  try {
    size_t id_end = 0, value_end = 0;
    const int id = std::stoi(text.substr(0, equals), &id_end);
    const std::string value_text = equals == std::string::npos ? "" : text.substr(equals + 1);
    const float value = std::stof(value_text, &value_end);
    if (id_end == equals && value_end == value_text.size()) return std::pair<int32_t, float>{id, value};
  } catch (const std::exception&) {
    // falls through to the error below
  }
  return invalid_argument("--logit-bias " + text + ": write ID=X, for example 42=-5.5");
}

}  // namespace

Result<SamplingParams> SamplingOptions::resolve(const GgufFile& file) const {
  PAGODA_ASSIGN_OR_RETURN(const SamplingDefaults d, sampling_defaults(file));
  SamplingParams p;
  p.temperature = temperature.value_or(static_cast<float>(d.temperature.value_or(0.8)));
  p.top_p = top_p.value_or(static_cast<float>(d.top_p.value_or(0.95)));
  p.min_p = min_p.value_or(static_cast<float>(d.min_p.value_or(0.0)));
  p.top_k = top_k.value_or(static_cast<int32_t>(std::min<uint64_t>(d.top_k.value_or(0), INT32_MAX)));
  p.repetition_penalty = repetition_penalty.value_or(static_cast<float>(d.repetition_penalty.value_or(1.0)));
  p.presence_penalty = presence_penalty;
  p.frequency_penalty = frequency_penalty;
  for (const std::string& text : logit_bias) {
    PAGODA_ASSIGN_OR_RETURN(const auto bias, parse_bias(text));
    p.logit_bias.push_back(bias);
  }
  p.seed = seed;
  p.max_tokens = max_tokens;
  p.min_tokens = min_tokens;
  p.num_choices = num_choices;
  p.ignore_eos = ignore_eos;
  p.stop = stop;
  p.stop_ids = stop_ids;
  return p;
}

void ChatOptions::add_to(CLI::App& app) {
  app.add_option("--system", system, "system message");
  app.add_option("--chat-template-file", template_file, "Jinja template to use instead of the file's own");
}

Result<std::string> chat_template_source(const GgufFile& file, const std::string& template_file) {
  if (!template_file.empty()) return read_text_file(template_file);
  PAGODA_ASSIGN_OR_RETURN(const std::string* source, file.get_string("tokenizer.chat_template"));
  if (source == nullptr) {
    return failed_precondition(file.path() + ": the file has no chat template; give one with --chat-template-file, or run without --chat");
  }
  return *source;
}

Result<RenderedChat> render_chat(const std::string& source, const ChatRequest& request, const Tokenizer& tokenizer) {
  PAGODA_ASSIGN_OR_RETURN(const ChatTemplate chat_template, ChatTemplate::parse(source));
  const auto token_text = [&](std::optional<int32_t> id) { return id ? std::string(tokenizer.piece(*id)) : std::string(); };
  ChatInput input;
  input.messages = request.messages;
  input.tools = request.tools;
  input.add_generation_prompt = request.add_generation_prompt;
  input.bos_token = token_text(tokenizer.spec().bos_id);
  input.eos_token = token_text(tokenizer.spec().eos_id);
  input.now_unix_seconds = std::time(nullptr);
  PAGODA_ASSIGN_OR_RETURN(const std::vector<RenderedSpan> spans, chat_template.render(input));
  std::vector<TextSegment> segments;
  for (const RenderedSpan& span : spans) segments.push_back({span.text, span.is_trusted});
  EncodeOptions options;
  options.parse_special = true;
  return RenderedChat{rendered_text(spans), tokenizer.encode_segments(segments, options)};
}

JsonValue make_message(const std::string& role, const std::string& content) {
  JsonObject message;
  message.emplace_back("role", JsonValue(JsonValue::Data(role)));
  message.emplace_back("content", JsonValue(JsonValue::Data(content)));
  return JsonValue(JsonValue::Data(std::move(message)));
}

}  // namespace pagoda::cli
