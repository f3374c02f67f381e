#include "chat_template/budget.h"

#include <utility>

namespace pagoda::jinja {

void fail(std::string message) { throw TemplateFailure{StatusCode::kInvalidArgument, std::move(message)}; }
void fail_limit(std::string message) { throw TemplateFailure{StatusCode::kResourceExhausted, std::move(message)}; }

void Budget::steps_exhausted() const {
  fail_limit("the template took more than " + std::to_string(limits_.max_steps) + " steps");
}
void Budget::memory_exhausted() const {
  fail_limit("the template's values need more than " + std::to_string(limits_.max_memory_bytes) + " bytes");
}
void Budget::string_too_long() const {
  fail_limit("the template makes a text of more than " + std::to_string(limits_.max_string_bytes) + " bytes");
}

}  // namespace pagoda::jinja
