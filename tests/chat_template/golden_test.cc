// Byte equality with jinja2. The goldens are made by scripts/make_chat_template_golden.py, which states the versions.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "chat_template/chat_template.h"

namespace pagoda {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Expected: {"text": ...} or {"error": "syntax" | "render", "message": ...}. Empty when equal, else what differs.
std::string difference(const std::string& source, const ChatInput& input, const JsonValue& expected) {
  const JsonValue* text = expected.find("text");
  auto parsed = ChatTemplate::parse(source);
  if (!parsed.ok()) {
    const JsonValue* error = expected.find("error");
    return error != nullptr && *error->as_string() == "syntax" ? "" : "parse: " + parsed.status().to_string();
  }
  const auto spans = parsed->render(input);
  if (!spans.ok()) {
    if (text != nullptr) return "render: " + spans.status().to_string();
    const JsonValue* message = expected.find("message");
    if (message == nullptr || spans.status().message().find(*message->as_string()) != std::string_view::npos) return "";
    return "other message: " + spans.status().to_string();
  }
  if (text == nullptr) return "no error, but: " + rendered_text(*spans);
  return rendered_text(*spans) == *text->as_string() ? "" : "got [" + rendered_text(*spans) + "] wanted [" + *text->as_string() + "]";
}

// PAGODA_LLAMA_CPP: llama.cpp's source tree. PAGODA_TEMPLATE_GOLDEN: what make_chat_template_golden.py wrote.
TEST(ChatTemplateGolden, RealTemplatesRenderAsJinja2) {
  const char* source = std::getenv("PAGODA_LLAMA_CPP");
  const char* golden_path = std::getenv("PAGODA_TEMPLATE_GOLDEN");
  if (source == nullptr || golden_path == nullptr) {
    GTEST_SKIP() << "set PAGODA_LLAMA_CPP to a llama.cpp source tree and PAGODA_TEMPLATE_GOLDEN to the goldens of its templates";
  }
  auto golden = parse_json(read_file(golden_path));
  ASSERT_TRUE(golden.ok()) << golden.status().to_string();
  int equal = 0, total = 0;
  for (const auto& [name, results] : *golden->find("templates")->as_object()) {
    const std::string text = read_file(std::string(source) + "/models/templates/" + name);
    for (size_t i = 0; i < results.as_array()->size(); ++i) {
      const JsonValue& variant = (*golden->find("variants")->as_array())[i];
      ChatInput input;
      input.messages = *variant.find("messages");
      input.tools = *variant.find("tools");
      input.add_generation_prompt = std::get<bool>(variant.find("prompt")->data());
      input.bos_token = "<|bos|>";
      input.eos_token = "<|eos|>";
      input.now_unix_seconds = *golden->find("now")->as_int();
      const std::string wrong = difference(text, input, (*results.as_array())[i]);
      ++total;
      equal += wrong.empty() ? 1 : 0;
      EXPECT_EQ(wrong.substr(0, 600), "") << name << " " << *variant.find("name")->as_string();
    }
  }
  std::cout << equal << " of " << total << " renders equal jinja2\n";
}

}  // namespace
}  // namespace pagoda
