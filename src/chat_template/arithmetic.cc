// + - * / // % ** with Python's results; an integer that leaves int64 is an error.

#include <cmath>

#include "chat_template/percent_format.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

[[noreturn]] void fail_operands(std::string_view op, const Value& a, const Value& b) {
  require_defined(a);
  require_defined(b);
  fail("unsupported operand type(s) for " + std::string(op) + ": '" + std::string(type_name(a)) + "' and '" +
       std::string(type_name(b)) + "'");
}

[[noreturn]] void fail_overflow(std::string_view op) {
  fail("the result of " + std::string(op) + " does not fit a 64-bit integer");
}

Value power(const Value& a, const Value& b) {
  if (!a.is_integral() || !b.is_integral() || b.as_int() < 0) {
    if (a.as_double() == 0 && b.as_double() < 0) fail("zero cannot be raised to a negative power");
    const double result = std::pow(a.as_double(), b.as_double());
    if (std::isnan(result) && !std::isnan(a.as_double()) && !std::isnan(b.as_double())) {
      fail("a negative number cannot be raised to a fractional power");
    }
    if (std::isinf(result) && std::isfinite(a.as_double()) && std::isfinite(b.as_double())) {
      fail("the result of ** is too large");
    }
    return Value::number(result);
  }
  int64_t base = a.as_int();
  int64_t exponent = b.as_int();
  int64_t result = 1;
  while (exponent > 0) {
    if (exponent % 2 == 1 && __builtin_mul_overflow(result, base, &result)) fail_overflow("**");
    exponent /= 2;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) fail_overflow("**");
  }
  return Value::integer(result);
}

Value integer_divide(std::string_view op, int64_t x, int64_t y) {
  if (y == 0) fail("integer division or modulo by zero");
  if (y == -1) {  // INT64_MIN / -1 traps
    if (op == "%") return Value::integer(0);
    int64_t result = 0;
    if (__builtin_sub_overflow(int64_t{0}, x, &result)) fail_overflow(op);
    return Value::integer(result);
  }
  const int64_t remainder = x % y;
  const bool adjust = remainder != 0 && ((remainder < 0) != (y < 0));
  if (op == "%") return Value::integer(adjust ? remainder + y : remainder);
  return Value::integer(x / y - (adjust ? 1 : 0));
}

Value float_divide(std::string_view op, double x, double y) {
  if (y == 0) fail("float division by zero");
  if (op == "/") return Value::number(x / y);
  double remainder = std::fmod(x, y);
  double quotient = (x - remainder) / y;
  if (remainder != 0) {
    if ((y < 0) != (remainder < 0)) {
      remainder += y;
      quotient -= 1;
    }
  } else {
    remainder = std::copysign(0.0, y);
  }
  if (op == "%") return Value::number(remainder);
  if (quotient == 0) return Value::number(std::copysign(0.0, x / y));
  double floored = std::floor(quotient);
  if (quotient - floored > 0.5) floored += 1;
  return Value::number(floored);
}

Value numbers(std::string_view op, const Value& a, const Value& b) {
  if (op == "**") return power(a, b);
  if (a.is(Kind::kBigInt) || b.is(Kind::kBigInt)) fail("an integer does not fit 64 bits");
  if (a.is_integral() && b.is_integral() && op != "/") {
    const int64_t x = a.as_int();
    const int64_t y = b.as_int();
    int64_t result = 0;
    if (op == "//" || op == "%") return integer_divide(op, x, y);
    const bool overflow = op == "+"   ? __builtin_add_overflow(x, y, &result)
                          : op == "-" ? __builtin_sub_overflow(x, y, &result)
                                      : __builtin_mul_overflow(x, y, &result);
    if (overflow) fail_overflow(op);
    return Value::integer(result);
  }
  const double x = a.as_double();
  const double y = b.as_double();
  if (op == "+") return Value::number(x + y);
  if (op == "-") return Value::number(x - y);
  if (op == "*") return Value::number(x * y);
  return float_divide(op, x, y);
}

Value add_text(const Heap& heap, const Value& a, const Value& b) {
  const bool is_markup = a.is_markup() || b.is_markup();
  Text out = is_markup && !a.is_markup() ? escape_html(heap, a.text()) : Text();
  const Text right = is_markup && !b.is_markup() ? escape_html(heap, b.text()) : Text();
  const Text& left_text = out.empty() ? a.text() : out;
  const Text& right_text = right.empty() ? b.text() : right;
  const size_t total = left_text.size() + right_text.size();
  heap.budget().check_string(total);
  heap.budget().check_memory(total);
  heap.budget().work(total);
  Text sum;
  sum.reserve(total);
  sum.append(left_text);
  sum.append(right_text);
  return heap.string(std::move(sum), is_markup);
}

Value add_items(const Heap& heap, const Value& a, const Value& b) {
  const Values& x = a.items();
  const Values& y = b.items();
  heap.budget().check_memory((x.size() + y.size()) * sizeof(Value));
  heap.budget().steps((x.size() + y.size()) / 4);
  Values out;
  out.reserve(x.size() + y.size());
  out.insert(out.end(), x.begin(), x.end());
  out.insert(out.end(), y.begin(), y.end());
  return a.is(Kind::kList) ? heap.list(std::move(out)) : heap.tuple(std::move(out));
}

Value repeat(const Heap& heap, const Value& value, int64_t times) {
  const uint64_t count = times < 0 ? 0 : static_cast<uint64_t>(times);
  const uint64_t unit = value.is_string() ? value.text().size() : value.items().size();
  uint64_t total = 0;
  if (__builtin_mul_overflow(unit, count, &total)) fail_limit("a repeated value is too long");
  if (value.is_string()) {
    heap.budget().check_string(total);
    heap.budget().check_memory(total);
    heap.budget().work(total);
    heap.budget().steps(unit == 0 ? 0 : count / 16);
    Text out;
    out.reserve(total);
    for (uint64_t i = 0; i < count && unit != 0; ++i) out.append(value.text());
    return heap.string(std::move(out), value.is_markup());
  }
  if (total > UINT32_MAX) fail_limit("a repeated list is too long");
  heap.budget().check_memory(total * sizeof(Value));
  heap.budget().steps(total / 4);
  Values out;
  out.reserve(total);
  for (uint64_t i = 0; i < count && unit != 0; ++i) out.insert(out.end(), value.items().begin(), value.items().end());
  return value.is(Kind::kList) ? heap.list(std::move(out)) : heap.tuple(std::move(out));
}

}  // namespace

Value arithmetic(const Heap& heap, std::string_view op, const Value& a, const Value& b) {
  if (a.is_numeric() && b.is_numeric()) return numbers(op, a, b);
  if (op == "+") {
    if (a.is_string() && b.is_string()) return add_text(heap, a, b);
    if (a.is_sequence() && a.kind() == b.kind()) return add_items(heap, a, b);
    require_defined(a);
    require_defined(b);
    if (a.is_string()) fail("can only concatenate str (not \"" + std::string(type_name(b)) + "\") to str");
  }
  if (op == "*") {
    if ((a.is_string() || a.is_sequence()) && b.is_integral()) return repeat(heap, a, b.as_int());
    if ((b.is_string() || b.is_sequence()) && a.is_integral()) return repeat(heap, b, a.as_int());
  }
  if (op == "%" && a.is_string()) {
    require_defined(b);
    return percent_format(heap, a, b);
  }
  fail_operands(op, a, b);
}

Value negate(const Value& value) {
  require_defined(value);
  if (value.is_integral()) return integer_divide("//", value.as_int(), -1);
  if (!value.is(Kind::kDouble)) fail("bad operand type for unary -: '" + std::string(type_name(value)) + "'");
  return Value::number(-value.as_double());
}

}  // namespace pagoda::jinja
