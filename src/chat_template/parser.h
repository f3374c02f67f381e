#pragma once
// Tokens into a Program, with jinja2's grammar.

#include <memory>
#include <string_view>

#include "chat_template/ast.h"

namespace pagoda::jinja {

/// Throws TemplateFailure with the line for a syntax error, an unknown filter or test, a tag outside the subset, or
/// nesting deeper than `max_depth`.
std::shared_ptr<const Program> parse_program(std::string_view source, uint32_t max_depth);

}  // namespace pagoda::jinja
