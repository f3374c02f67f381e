// pagoda tokenize: text or a conversation to token ids, as the model sees them.

#include <iostream>

#include "cli/common.h"
#include "cli/subcommands.h"

namespace pagoda::cli {

namespace {

struct TokenizeOptions {
  std::string path, text, text_file, messages_file, tools_file, template_file;
  bool parse_special = false;
  bool no_bos = false;
  bool no_generation_prompt = false;
  bool json = true;
};

void write_tokens(JsonWriter& w, const std::vector<int32_t>& ids, const Tokenizer& tokenizer) {
  w.key("ids");
  w.begin_array();
  for (const int32_t id : ids) w.value(id);
  w.end_array();
  w.key("pieces");
  w.begin_array();
  for (const int32_t id : ids) w.value(tokenizer.piece(id));
  w.end_array();
}

Result<JsonValue> read_json_file(const std::string& path) {
  PAGODA_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  auto json = parse_json(text);
  if (!json.ok()) return json.status().with_context(path);
  return json;
}

Result<std::string> tokenize_messages(const TokenizeOptions& o, const GgufFile& file, const Tokenizer& tokenizer) {
  PAGODA_ASSIGN_OR_RETURN(const std::string source, chat_template_source(file, o.template_file));
  ChatRequest request;
  PAGODA_ASSIGN_OR_RETURN(request.messages, read_json_file(o.messages_file));
  if (!request.messages.is_array()) return invalid_argument(o.messages_file + ": must be an array of messages");
  if (!o.tools_file.empty()) {
    PAGODA_ASSIGN_OR_RETURN(request.tools, read_json_file(o.tools_file));
  }
  request.add_generation_prompt = !o.no_generation_prompt;
  PAGODA_ASSIGN_OR_RETURN(const RenderedChat chat, render_chat(source, request, tokenizer));
  JsonWriter w;
  w.begin_object();
  w.field("text", std::string_view(chat.text));
  write_tokens(w, chat.ids, tokenizer);
  w.end_object();
  return w.take();
}

Result<std::string> tokenize(const TokenizeOptions& o) {
  GgufFile::Options options;
  options.unknown_types = GgufUnknownTypes::kList;
  PAGODA_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(o.path, options));
  PAGODA_ASSIGN_OR_RETURN(TokenizerSpec spec, tokenizer_spec_from_gguf(file));
  if (o.no_bos) spec.add_bos = false;
  PAGODA_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::create(std::move(spec)));
  if (!o.messages_file.empty()) return tokenize_messages(o, file, *tokenizer);
  std::string text = o.text;
  if (!o.text_file.empty()) {
    PAGODA_ASSIGN_OR_RETURN(text, read_text_file(o.text_file));
  }
  EncodeOptions encode;
  encode.parse_special = o.parse_special;
  JsonWriter w;
  w.begin_object();
  write_tokens(w, tokenizer->encode(text, encode), *tokenizer);
  w.end_object();
  return w.take();
}

}  // namespace

void add_tokenize(CLI::App& program, Action& action) {
  auto o = std::make_shared<TokenizeOptions>();
  CLI::App* app = program.add_subcommand("tokenize", "show the tokens of a text or of a rendered conversation (JSON)");
  app->add_option("-m,--model", o->path, "model file; a vocabulary-only one will do")->required();
  auto* source = app->add_option_group("input", "what to tokenise (one of them)");
  source->add_option("-p,--prompt", o->text, "text");
  source->add_option("-f,--file", o->text_file, "file with text; - is standard input");
  source->add_option("--messages", o->messages_file, "JSON file with a conversation: [{\"role\", \"content\"}, ...]");
  source->require_option(1);
  app->add_option("--tools", o->tools_file, "JSON file with tool definitions");
  app->add_option("--chat-template-file", o->template_file, "Jinja template to use instead of the file's own");
  app->add_flag("--parse-special", o->parse_special, "texts of control tokens become those tokens");
  app->add_flag("--no-bos", o->no_bos, "do not add the beginning-of-sequence token");
  app->add_flag("--no-generation-prompt", o->no_generation_prompt, "do not open the assistant's turn");
  app->add_flag("--json", o->json, "JSON, as always (for symmetry with the other subcommands)");
  app->callback([o, &action] {
    action = [o] {
      const auto text = tokenize(*o);
      if (!text.ok()) return report_failure(text.status(), true);
      std::cout << *text << std::endl;
      return 0;
    };
  });
}

}  // namespace pagoda::cli
