#include "chat_template/chat_template.h"

#include <algorithm>
#include <array>
#include <new>

#include "base/utf8.h"
#include "chat_template/interpreter.h"
#include "chat_template/parser.h"

namespace pagoda {
namespace {

using jinja::DictObject;
using jinja::Heap;
using jinja::Kind;
using jinja::Text;
using jinja::Value;
using jinja::Values;

// Names a caller's own variables may not take: a request must not be able to replace what the engine passes.
constexpr std::array<std::string_view, 6> kReserved = {"messages",  "tools",     "documents", "add_generation_prompt",
                                                       "bos_token", "eos_token"};
// Roles are a closed vocabulary of the chat protocol, not content. Templates spell control tokens with them
// ('<|' + message.role + '|>'), so these values count as the template's own text; any other role does not.
constexpr std::array<std::string_view, 6> kRoles = {"system", "developer", "user", "assistant", "tool", "function"};

Value from_json(const Heap& heap, const JsonValue& json);

Value text_from(const Heap& heap, const std::string& text, bool is_trusted) {
  heap.budget().check_memory(text.size());
  return heap.string(is_valid_utf8(text) ? text : repair_utf8(text), is_trusted);
}

Value array_from(const Heap& heap, const JsonArray& array) {
  heap.budget().check_memory(array.size() * sizeof(Value));
  Values items;
  items.reserve(array.size());
  for (const JsonValue& item : array) items.push_back(from_json(heap, item));
  return heap.list(std::move(items));
}

Value object_from(const Heap& heap, const JsonObject& object) {
  auto dict = heap.dict();
  for (const auto& [key, value] : object) dict->set(text_from(heap, key, false), from_json(heap, value));
  return Value(Kind::kDict, std::move(dict));
}

struct JsonReader {
  const Heap& heap;
  Value operator()(std::nullptr_t) const { return Value::none(); }
  Value operator()(bool b) const { return Value::boolean(b); }
  Value operator()(int64_t i) const { return Value::integer(i); }
  Value operator()(uint64_t u) const {
    return u > static_cast<uint64_t>(INT64_MAX) ? Value::big_integer(u) : Value::integer(static_cast<int64_t>(u));
  }
  Value operator()(double d) const { return Value::number(d); }
  Value operator()(const std::string& text) const { return text_from(heap, text, false); }
  Value operator()(const JsonArray& array) const { return array_from(heap, array); }
  Value operator()(const JsonObject& object) const { return object_from(heap, object); }
};

Value from_json(const Heap& heap, const JsonValue& json) { return std::visit(JsonReader{heap}, json.data()); }

Value message_from(const Heap& heap, const JsonValue& json) {
  const JsonObject* object = json.as_object();
  if (object == nullptr) return from_json(heap, json);
  auto dict = heap.dict();
  for (const auto& [key, value] : *object) {
    const std::string* role = key == "role" ? value.as_string() : nullptr;
    const bool is_known = role != nullptr && std::find(kRoles.begin(), kRoles.end(), *role) != kRoles.end();
    dict->set(text_from(heap, key, false), is_known ? text_from(heap, *role, true) : from_json(heap, value));
  }
  return Value(Kind::kDict, std::move(dict));
}

Value messages_from(const Heap& heap, const JsonValue& json) {
  const JsonArray* array = json.as_array();
  if (array == nullptr) return from_json(heap, json);
  heap.budget().check_memory(array->size() * sizeof(Value));
  Values items;
  items.reserve(array->size());
  for (const JsonValue& item : *array) items.push_back(message_from(heap, item));
  return heap.list(std::move(items));
}

void set_input(jinja::Interpreter& interpreter, const ChatInput& input) {
  const Heap& heap = interpreter.heap();
  interpreter.set_variable("messages", messages_from(heap, input.messages));
  interpreter.set_variable("tools", from_json(heap, input.tools));
  interpreter.set_variable("documents", from_json(heap, input.documents));
  interpreter.set_variable("add_generation_prompt", Value::boolean(input.add_generation_prompt));
  interpreter.set_variable("bos_token", text_from(heap, input.bos_token, true));
  interpreter.set_variable("eos_token", text_from(heap, input.eos_token, true));
  for (const auto& [name, value] : input.extra) {
    if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end()) {
      jinja::fail("the template variable '" + name + "' is set by the engine; choose another name");
    }
    interpreter.set_variable(name, from_json(heap, value));
  }
}

std::string out_of_memory() { return "chat template: the machine has no memory left"; }

}  // namespace

struct ChatTemplate::Impl {
  ChatTemplateLimits limits;
  std::shared_ptr<const jinja::Program> program;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, const ChatTemplateLimits& limits) {
  if (source.size() > limits.max_source_bytes) {
    return resource_exhausted("chat template: " + std::to_string(source.size()) + " bytes; the limit is " +
                              std::to_string(limits.max_source_bytes));
  }
  if (!is_valid_utf8(source)) return invalid_argument("chat template: the source is not valid UTF-8");
  try {
    auto impl = std::make_unique<Impl>();
    impl->limits = limits;
    // Positions inside texts are 32 bits wide.
    impl->limits.max_output_bytes = std::min<uint64_t>(limits.max_output_bytes, UINT32_MAX / 2);
    impl->program = jinja::parse_program(source, limits.max_depth);
    return ChatTemplate(std::move(impl));
  } catch (const jinja::TemplateFailure& failure) {
    return Status(failure.code, "chat template: " + failure.message);
  } catch (const std::bad_alloc&) {
    return resource_exhausted(out_of_memory());
  }
}

Result<std::vector<RenderedSpan>> ChatTemplate::render(const ChatInput& input) const {
  try {
    jinja::Interpreter interpreter(*impl_->program, impl_->limits, input.now_unix_seconds);
    try {
      set_input(interpreter, input);
      const Text text = interpreter.run();
      std::vector<RenderedSpan> spans;
      text.append_spans(spans);
      return spans;
    } catch (const jinja::TemplateFailure& failure) {
      return Status(failure.code, "chat template, line " + std::to_string(interpreter.line()) + ": " + failure.message);
    }
  } catch (const std::bad_alloc&) {
    return resource_exhausted(out_of_memory());
  }
}

std::string rendered_text(const std::vector<RenderedSpan>& spans) {
  std::string out;
  for (const RenderedSpan& span : spans) out += span.text;
  return out;
}

}  // namespace pagoda
