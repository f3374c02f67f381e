#pragma once
// Binding of call arguments to the named parameters of a built-in function, as Python binds them.

#include <initializer_list>
#include <string>

#include "chat_template/value.h"

namespace pagoda::jinja {

class BoundArguments {
 public:
  /// Fails when an argument is missing (the first `num_required`), unknown, given twice or one too many.
  BoundArguments(std::string_view function, const CallArguments& arguments, std::initializer_list<std::string_view> names,
                 size_t num_required);

  bool has(size_t i) const { return given_[i]; }
  const Value& operator[](size_t i) const { return values_[i]; }
  /// The argument, or `fallback` when it was not given.
  int64_t integer_or(size_t i, int64_t fallback) const;
  bool bool_or(size_t i, bool fallback) const;
  /// Fails when it is no string.
  const Text& text(size_t i) const;
  /// Not given or none.
  bool is_absent(size_t i) const { return !given_[i] || values_[i].is_none(); }

 private:
  std::string function_;
  Values values_;
  std::vector<bool> given_;
};

/// An index or count argument; fails on anything but an integer.
int64_t require_integer(std::string_view function, const Value& value);
/// Fails on anything but a string.
const Text& require_text(std::string_view function, const Value& value);

}  // namespace pagoda::jinja
