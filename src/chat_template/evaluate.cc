// Expressions. Chains through the left operand (a.b.c, a + b + c, a | f | g) are walked with a list, not by recursion.

#include "base/check.h"
#include "chat_template/filters.h"
#include "chat_template/interpreter.h"
#include "chat_template/methods.h"
#include "chat_template/string_ops.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

bool continues_left(ExprType type) {
  switch (type) {
    case ExprType::kAttribute:
    case ExprType::kSubscript:
    case ExprType::kSlice:
    case ExprType::kCall:
    case ExprType::kFilter:
    case ExprType::kTest:
    case ExprType::kBinary:
    case ExprType::kAnd:
    case ExprType::kOr:
    case ExprType::kCompare: return true;
    default: return false;
  }
}

class Counter {
 public:
  Counter(uint32_t& value, uint32_t limit) : value_(value) {
    if (value_ >= limit) fail_limit("the template recurses too deeply");
    ++value_;
  }
  ~Counter() { --value_; }

 private:
  uint32_t& value_;
};

}  // namespace

Value Interpreter::evaluate(const Expr* node) {
  const Counter depth(frames_, max_frames_);
  const size_t base = spine_.size();
  while (node != nullptr && continues_left(node->type)) {
    budget_.step();
    spine_.push_back(node);
    node = node->left;
  }
  // A filter block starts its chain with the captured text.
  Value value = node == nullptr ? filter_input_ : evaluate_leaf(*node);
  while (spine_.size() > base) {
    const Expr& step = *spine_.back();
    spine_.pop_back();
    value = apply(step, std::move(value));
  }
  return value;
}

Value Interpreter::evaluate_leaf(const Expr& node) {
  budget_.step();
  line_ = node.line;
  switch (node.type) {
    case ExprType::kConstant: return node.value;
    case ExprType::kName: return evaluate_name(node);
    case ExprType::kTuple: return heap_.tuple(evaluate_all(node.items));
    case ExprType::kList: return heap_.list(evaluate_all(node.items));
    case ExprType::kDict: return evaluate_dict(node);
    case ExprType::kConcat: return concat(node);
    case ExprType::kNot: return Value::boolean(!is_true(evaluate(node.left)));
    case ExprType::kNegate: return negate(evaluate(node.left));
    case ExprType::kPlus: {
      const Value value = evaluate(node.left);
      require_defined(value);
      if (value.is(Kind::kBool)) return Value::integer(value.as_int());
      if (!value.is_numeric()) fail("bad operand type for unary +: '" + std::string(type_name(value)) + "'");
      return value;
    }
    case ExprType::kConditional:
      if (is_true(evaluate(node.left))) return evaluate(node.right);
      if (node.third != nullptr) return evaluate(node.third);
      return heap_.undefined("the inline if-expression evaluated to false and no else section was defined");
    default: break;
  }
  PAGODA_CHECK(false && "not a leaf");
  return {};
}

Value Interpreter::apply(const Expr& node, Value left) {
  line_ = node.line;
  switch (node.type) {
    case ExprType::kAttribute: return get_attribute(left, node.value);
    case ExprType::kSubscript: return get_item_or_attribute(left, evaluate(node.right));
    case ExprType::kSlice: {
      Value bounds[3] = {Value::none(), Value::none(), Value::none()};
      for (size_t i = 0; i < 3; ++i) {
        if (node.items[i] != nullptr) bounds[i] = evaluate(node.items[i]);
      }
      return slice_value(heap_, left, bounds[0], bounds[1], bounds[2]);
    }
    case ExprType::kCall: {
      CallArguments arguments = evaluate_arguments(node.call);
      line_ = node.line;
      return call(left, arguments);
    }
    case ExprType::kFilter: {
      CallArguments arguments = evaluate_arguments(node.call);
      line_ = node.line;
      return apply_filter(node.text, left, arguments);
    }
    case ExprType::kTest: {
      CallArguments arguments = evaluate_arguments(node.call);
      line_ = node.line;
      return Value::boolean(apply_test(node.text, left, arguments));
    }
    case ExprType::kBinary: {
      const Value right = evaluate(node.right);
      line_ = node.line;
      return arithmetic(heap_, node.text, left, right);
    }
    case ExprType::kAnd: return is_true(left) ? evaluate(node.right) : left;
    case ExprType::kOr: return is_true(left) ? left : evaluate(node.right);
    case ExprType::kCompare: return evaluate_compare(node, std::move(left));
    default: break;
  }
  PAGODA_CHECK(false && "not a chain");
  return {};
}

Value Interpreter::evaluate_compare(const Expr& node, Value left) {
  for (size_t i = 0; i < node.operators.size(); ++i) {
    const std::string& op = node.operators[i];
    Value right = evaluate(node.items[i]);
    line_ = node.line;
    bool holds = false;
    if (op == "==") holds = equals(left, right);
    else if (op == "!=") holds = !equals(left, right);
    else if (op == "in") holds = contains(heap_, right, left);
    else if (op == "not in") holds = !contains(heap_, right, left);
    else holds = ordered(left, right, op);
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::evaluate_dict(const Expr& node) {
  auto dict = heap_.dict();
  for (size_t i = 0; i < node.items.size(); i += 2) {
    Value key = evaluate(node.items[i]);
    dict->set(std::move(key), evaluate(node.items[i + 1]));
  }
  return Value(Kind::kDict, std::move(dict));
}

Value Interpreter::evaluate_name(const Expr& node) {
  const Value* found = scope_->find(node.symbol, budget_);
  if (found != nullptr) return *found;
  return heap_.undefined("'" + node.text + "' is undefined");
}

Value Interpreter::concat(const Expr& node) {
  TextBuilder out(heap_);
  for (const Expr* item : node.items) out.append(to_text(heap_, evaluate(item)));
  return heap_.string(out.take());
}

Values Interpreter::evaluate_all(const ExprList& list) {
  Values out;
  out.reserve(list.size());
  for (const Expr* item : list) out.push_back(evaluate(item));
  return out;
}

CallArguments Interpreter::evaluate_arguments(const CallSyntax& syntax) {
  CallArguments out;
  out.positional = evaluate_all(syntax.positional);
  for (const auto& [name, expression] : syntax.keyword) out.keyword.emplace_back(name, evaluate(expression));
  if (syntax.star != nullptr) {
    const Values more = iterate(heap_, evaluate(syntax.star));
    out.positional.insert(out.positional.end(), more.begin(), more.end());
  }
  if (syntax.double_star != nullptr) {
    const Value more = evaluate(syntax.double_star);
    if (!more.is(Kind::kDict)) fail("argument after ** must be a mapping, not " + std::string(type_name(more)));
    for (const auto& [key, value] : more.dict().entries()) {
      budget_.step();
      if (!key.is_string()) fail("keywords must be strings");
      for (const auto& known : out.keyword) {
        if (known.first == key.str()) fail("got multiple values for keyword argument '" + key.str() + "'");
      }
      budget_.steps(out.keyword.size());
      out.keyword.emplace_back(key.str(), value);
    }
  }
  return out;
}

Value Interpreter::call(const Value& callee, CallArguments& arguments) {
  budget_.step();
  require_defined(callee);
  if (callee.is(Kind::kMacro)) return call_macro(callee.object<MacroObject>(), arguments);
  if (callee.is(Kind::kFunction)) {
    const auto& function = callee.object<FunctionObject>();
    return function.function(*this, function.self, arguments);
  }
  if (callee.is(Kind::kLoop)) {
    if (arguments.positional.size() != 1 || !arguments.keyword.empty()) fail("loop() takes one iterable");
    return loop_call(callee.object<LoopObject>(), arguments.positional[0]);
  }
  if (callee.is(Kind::kJoiner)) {
    auto& joiner = callee.object<JoinerObject>();
    if (std::exchange(joiner.used, true)) return joiner.separator;
    return heap_.string("");
  }
  fail("'" + std::string(type_name(callee)) + "' object is not callable");
}

Value Interpreter::apply_filter(const std::string& name, const Value& input, CallArguments& arguments) {
  const NativeFunction filter = find_filter(name);
  if (filter == nullptr) fail("no filter named '" + name + "'");
  budget_.step();
  return filter(*this, input, arguments);
}

bool Interpreter::apply_test(const std::string& name, const Value& input, CallArguments& arguments) {
  const TestFunction test = find_test(name);
  if (test == nullptr) fail("no test named '" + name + "'");
  budget_.step();
  return test(*this, input, arguments);
}

Value Interpreter::get_attribute(const Value& object, const Value& name) {
  require_defined(object);
  Value out;
  if (find_attribute(object, name.str(), out)) return out;
  if (get_item(heap_, object, name, out)) return out;
  if (name.str().starts_with("__")) fail("access to attribute '" + name.str() + "' is unsafe");
  return heap_.undefined("'" + std::string(type_name(object)) + " object' has no attribute '" + name.str() + "'");
}

Value Interpreter::get_item_or_attribute(const Value& object, const Value& key) {
  require_defined(object);
  Value out;
  if (get_item(heap_, object, key, out)) return out;
  if (key.is_string()) {
    if (find_attribute(object, key.str(), out)) return out;
    if (key.str().starts_with("__")) fail("access to attribute '" + key.str() + "' is unsafe");
  }
  const std::string shown = to_repr(heap_, key).bytes().substr(0, 100);
  return heap_.undefined("'" + std::string(type_name(object)) + " object' has no element " + shown);
}

bool Interpreter::find_attribute(const Value& object, const std::string& name, Value& out) {
  if (object.is(Kind::kNamespace)) {
    const Value* found = object.object<NamespaceObject>().find(name);
    if (found != nullptr) out = *found;
    return found != nullptr;
  }
  if (object.is(Kind::kLoop)) {
    out = loop_attribute(object, name);
    return !out.is_undefined() || out.identity() != nullptr;
  }
  return find_method(*this, object, name, out);
}

Value Interpreter::loop_attribute(const Value& value, const std::string& name) {
  auto& loop = value.object<LoopObject>();
  if (name == "index") return Value::integer(loop.index0 + 1);
  if (name == "index0") return Value::integer(loop.index0);
  if (name == "first") return Value::boolean(loop.index0 == 0);
  if (name == "depth") return Value::integer(loop.depth0 + 1);
  if (name == "depth0") return Value::integer(loop.depth0);
  if (name == "length") return Value::integer(loop_length(loop));
  if (name == "revindex") return Value::integer(loop_length(loop) - loop.index0);
  if (name == "revindex0") return Value::integer(loop_length(loop) - loop.index0 - 1);
  if (name == "last") {
    Value ignored;
    return Value::boolean(!loop_peek(loop, ignored));
  }
  if (name == "previtem") return loop.index0 <= 0 ? heap_.undefined("there is no previous item") : loop.before;
  if (name == "nextitem") {
    Value next;
    return loop_peek(loop, next) ? next : heap_.undefined("there is no next item");
  }
  Value method;
  return find_method(*this, value, name, method) ? method : Value();
}

}  // namespace pagoda::jinja
