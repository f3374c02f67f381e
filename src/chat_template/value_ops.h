#pragma once
// Python's operators over Values: truth, equality, order, arithmetic, membership, subscripts, printing.

#include <functional>
#include <string>
#include <string_view>

#include "chat_template/value.h"

namespace pagoda::jinja {

bool is_true(const Value& value);
bool equals(const Value& a, const Value& b);
/// Negative, zero or positive; fails when Python would raise TypeError. `op` is for the message.
int compare(const Value& a, const Value& b, std::string_view op);
/// a < b, a <= b, a > b, a >= b with NaN as in Python.
bool ordered(const Value& a, const Value& b, std::string_view op);
bool contains(const Heap& heap, const Value& container, const Value& item);
/// Fails on what Python cannot hash.
uint64_t hash_value(const Value& value);
uint64_t hash_text(std::string_view text);

/// `op` is one of + - * / // % **.
Value arithmetic(const Heap& heap, std::string_view op, const Value& a, const Value& b);
Value negate(const Value& value);

/// str(value) and repr(value); the text is trusted when no part came from a variable.
Text to_text(const Heap& heap, const Value& value);
Text to_repr(const Heap& heap, const Value& value);
std::string float_repr(double d);
std::string integer_text(const Value& value);
/// `text` with & < > ' " replaced as markupsafe does.
Text escape_html(const Heap& heap, const Text& text);
/// escape(value): markup stays, anything else is printed and escaped.
Text escape_value(const Heap& heap, const Value& value);

/// len(value); fails when it has none.
int64_t length_of(const Value& value);
/// True when list(value) would work.
bool is_iterable(const Value& value);
/// list(value), charging a step an item; consumes iterators.
Values iterate(const Heap& heap, const Value& value);

/// obj[start:stop:step] for strings, lists, tuples and ranges; undefined or none mean absent.
Value slice_value(const Heap& heap, const Value& value, const Value& start, const Value& stop, const Value& step);
/// Plain subscript without attribute fallback; false when there is no such item.
bool get_item(const Heap& heap, const Value& value, const Value& key, Value& out);

}  // namespace pagoda::jinja
