#include "chat_template/arguments.h"

#include "chat_template/value_ops.h"

namespace pagoda::jinja {

BoundArguments::BoundArguments(std::string_view function, const CallArguments& arguments,
                               std::initializer_list<std::string_view> names, size_t num_required)
    : function_(function), values_(names.size()), given_(names.size(), false) {
  if (arguments.positional.size() > names.size()) {
    fail(function_ + "() takes at most " + std::to_string(names.size()) + " arguments");
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    values_[i] = arguments.positional[i];
    given_[i] = true;
  }
  for (const auto& [name, value] : arguments.keyword) {
    size_t i = 0;
    while (i < names.size() && names.begin()[i] != name) ++i;
    if (i == names.size()) fail(function_ + "() got an unexpected keyword argument '" + name + "'");
    if (given_[i]) fail(function_ + "() got multiple values for argument '" + name + "'");
    values_[i] = value;
    given_[i] = true;
  }
  for (size_t i = 0; i < num_required; ++i) {
    if (!given_[i]) fail(function_ + "() is missing the argument '" + std::string(names.begin()[i]) + "'");
  }
}

int64_t BoundArguments::integer_or(size_t i, int64_t fallback) const {
  return given_[i] ? require_integer(function_, values_[i]) : fallback;
}
bool BoundArguments::bool_or(size_t i, bool fallback) const { return given_[i] ? is_true(values_[i]) : fallback; }
const Text& BoundArguments::text(size_t i) const { return require_text(function_, values_[i]); }

int64_t require_integer(std::string_view function, const Value& value) {
  require_defined(value);
  if (!value.is_integral()) fail(std::string(function) + "(): an integer is required, not " + std::string(type_name(value)));
  return value.as_int();
}
const Text& require_text(std::string_view function, const Value& value) {
  require_defined(value);
  if (!value.is_string()) fail(std::string(function) + "(): a string is required, not " + std::string(type_name(value)));
  return value.text();
}

}  // namespace pagoda::jinja
