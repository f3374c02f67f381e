// jinja2's tests: what stands after `is`.

#include "base/utf8.h"
#include "chat_template/arguments.h"
#include "chat_template/filters.h"
#include "chat_template/interpreter.h"
#include "chat_template/unicode.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

using In = Interpreter;
using V = Value;
using Args = CallArguments;

const Value& other(const Args& a) {
  if (a.positional.size() != 1 || !a.keyword.empty()) fail("the test takes exactly one argument");
  return a.positional[0];
}
bool remainder_is(In& in, const V& v, const V& divisor, int64_t wanted) {
  return equals(arithmetic(in.heap(), "%", v, divisor), Value::integer(wanted));
}
bool is_cased(In& in, const V& v, bool want_upper) {
  const Text text = to_text(in.heap(), v);
  in.budget().work(text.size() * 8);
  bool found = false;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text.view().substr(at));
    if (want_upper ? unicode::is_lower(c.code_point) : unicode::is_upper(c.code_point)) return false;
    found |= want_upper ? unicode::is_upper(c.code_point) : unicode::is_lower(c.code_point);
    at += c.length;
  }
  return found;
}

bool odd(In& in, const V& v, Args&) { return remainder_is(in, v, Value::integer(2), 1); }
bool even(In& in, const V& v, Args&) { return remainder_is(in, v, Value::integer(2), 0); }
bool divisibleby(In& in, const V& v, Args& a) { return remainder_is(in, v, other(a), 0); }
bool defined(In&, const V& v, Args&) { return !v.is_undefined(); }
bool undefined(In&, const V& v, Args&) { return v.is_undefined(); }
bool none(In&, const V& v, Args&) { return v.is_none(); }
bool boolean(In&, const V& v, Args&) { return v.is(Kind::kBool); }
bool is_false(In&, const V& v, Args&) { return v.is(Kind::kBool) && !v.as_bool(); }
bool is_true_value(In&, const V& v, Args&) { return v.is(Kind::kBool) && v.as_bool(); }
bool integer(In&, const V& v, Args&) { return v.is(Kind::kInt) || v.is(Kind::kBigInt); }
bool floating(In&, const V& v, Args&) { return v.is(Kind::kDouble); }
bool number(In&, const V& v, Args&) { return v.is_numeric(); }
bool string(In&, const V& v, Args&) { return v.is_string(); }
bool mapping(In&, const V& v, Args&) { return v.is(Kind::kDict); }
bool sequence(In&, const V& v, Args&) {
  return v.is_string() || v.is_sequence() || v.is(Kind::kDict) || v.is(Kind::kRange);
}
bool iterable(In&, const V& v, Args&) { return is_iterable(v); }
bool callable(In&, const V& v, Args&) {
  return v.is(Kind::kMacro) || v.is(Kind::kFunction) || v.is(Kind::kLoop) || v.is(Kind::kJoiner) || v.is_undefined();
}
bool lower(In& in, const V& v, Args&) { return is_cased(in, v, false); }
bool upper(In& in, const V& v, Args&) { return is_cased(in, v, true); }
bool escaped(In&, const V& v, Args&) { return v.is_markup(); }
bool filter_name(In&, const V& v, Args&) { return v.is_string() && find_filter(v.str()) != nullptr; }
bool test_name(In&, const V& v, Args&) { return v.is_string() && find_test(v.str()) != nullptr; }
bool sameas(In&, const V& v, Args& a) {
  const V& o = other(a);
  if (v.kind() != o.kind()) return false;
  if (v.identity() != nullptr || o.identity() != nullptr) {
    // Python shares equal short texts of one program; identity of other objects is the object's.
    return v.is_string() ? equals(v, o) : v.identity() == o.identity();
  }
  return equals(v, o);
}
bool in(In& i, const V& v, Args& a) { return contains(i.heap(), other(a), v); }
bool eq(In&, const V& v, Args& a) { return equals(v, other(a)); }
bool ne(In&, const V& v, Args& a) { return !equals(v, other(a)); }
bool gt(In&, const V& v, Args& a) { return ordered(v, other(a), ">"); }
bool ge(In&, const V& v, Args& a) { return ordered(v, other(a), ">="); }
bool lt(In&, const V& v, Args& a) { return ordered(v, other(a), "<"); }
bool le(In&, const V& v, Args& a) { return ordered(v, other(a), "<="); }

constexpr struct {
  std::string_view name;
  TestFunction function;
} kTests[] = {
    {"odd", odd},           {"even", even},         {"divisibleby", divisibleby}, {"defined", defined},
    {"undefined", undefined}, {"none", none},       {"boolean", boolean},         {"false", is_false},
    {"true", is_true_value}, {"integer", integer},  {"float", floating},          {"number", number},
    {"string", string},     {"mapping", mapping},   {"sequence", sequence},       {"iterable", iterable},
    {"callable", callable}, {"lower", lower},       {"upper", upper},             {"escaped", escaped},
    {"filter", filter_name}, {"test", test_name},   {"sameas", sameas},           {"in", in},
    {"==", eq},             {"eq", eq},             {"equalto", eq},              {"!=", ne},
    {"ne", ne},             {">", gt},              {"gt", gt},                   {"greaterthan", gt},
    {">=", ge},             {"ge", ge},             {"<", lt},                    {"lt", lt},
    {"lessthan", lt},       {"<=", le},             {"le", le},
};

}  // namespace

TestFunction find_test(std::string_view name) {
  for (const auto& entry : kTests) {
    if (entry.name == name) return entry.function;
  }
  return nullptr;
}

}  // namespace pagoda::jinja
