#include "chat_template/interpreter.h"

#include <algorithm>

#include "base/check.h"
#include "chat_template/globals.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

// A scope and its first variables, charged when a macro keeps it alive.
constexpr size_t kScopeBytes = 256;
// One macro call passes through several nested blocks and expressions; the limit on calls is max_depth itself.
constexpr uint32_t kFramesPerCall = 8;

}  // namespace

void Scope::set(uint32_t symbol, Value value) {
  for (auto& [known, old] : variables) {
    if (known == symbol) {
      old = std::move(value);
      return;
    }
  }
  variables.emplace_back(symbol, std::move(value));
}

const Value* Scope::find(uint32_t symbol, Budget& budget) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent) {
    budget.steps(scope->variables.size() / 32);
    for (const auto& [known, value] : scope->variables) {
      if (known == symbol) return &value;
    }
  }
  return nullptr;
}

LoopObject::LoopObject(Budget* budget, const Statement& s, Values v, Scope* o)
    : Object(budget, sizeof(*this) + v.capacity() * sizeof(Value)), statement(s), items(std::move(v)), outer(o) {
  for (const Value& item : items) depth = std::max(depth, item.depth() + 1);
}

// Opens a scope below `parent`; on closing, a captured scope is handed to the interpreter.
class Interpreter::ScopeGuard {
 public:
  ScopeGuard(Interpreter& interpreter, Scope* parent)
      : interpreter_(interpreter), previous_(interpreter.scope_), scope_(std::make_unique<Scope>()) {
    scope_->parent = parent;
    interpreter_.scope_ = scope_.get();
  }
  ~ScopeGuard() {
    interpreter_.scope_ = previous_;
    if (scope_->is_captured) interpreter_.captured_.push_back(std::move(scope_));
  }
  Scope& scope() { return *scope_; }
  /// Empties the scope for the next turn of a loop, unless a macro keeps it.
  void renew() {
    if (!scope_->is_captured) {
      scope_->variables.clear();
      return;
    }
    auto fresh = std::make_unique<Scope>();
    fresh->parent = scope_->parent;
    interpreter_.captured_.push_back(std::move(scope_));
    scope_ = std::move(fresh);
    interpreter_.scope_ = scope_.get();
  }

 private:
  Interpreter& interpreter_;
  Scope* previous_;
  std::unique_ptr<Scope> scope_;
};

class Interpreter::DepthGuard {
 public:
  DepthGuard(uint32_t& depth, uint32_t limit) : depth_(depth) {
    if (depth_ >= limit) fail_limit("the template recurses too deeply");
    ++depth_;
  }
  ~DepthGuard() { --depth_; }

 private:
  uint32_t& depth_;
};

// Collects what is written during its lifetime.
class Interpreter::Capture {
 public:
  explicit Capture(Interpreter& interpreter) : interpreter_(interpreter), previous_(interpreter.output_) {
    interpreter_.output_ = &text_;
  }
  ~Capture() {
    interpreter_.output_ = previous_;
    interpreter_.budget_.give_memory(text_.capacity() > kInline ? text_.capacity() : 0);
  }
  Value take() {
    interpreter_.budget_.give_memory(text_.capacity() > kInline ? text_.capacity() : 0);
    Text text = std::move(text_);
    text_ = Text();
    return interpreter_.heap_.string(std::move(text));
  }
  static constexpr size_t kInline = 15;  ///< std::string holds this much without allocating

 private:
  Interpreter& interpreter_;
  Text* previous_;
  Text text_;
};

Interpreter::Interpreter(const Program& program, const ChatTemplateLimits& limits, int64_t now_unix_seconds)
    : program_(program),
      budget_({limits.max_steps, limits.max_output_bytes, limits.max_memory_bytes}),
      heap_(budget_),
      now_(now_unix_seconds),
      max_calls_(limits.max_depth),
      max_frames_(limits.max_depth * kFramesPerCall) {
  captured_.push_back(std::make_unique<Scope>());
  scope_ = captured_.back().get();
  scope_->is_captured = true;
  add_globals(*this);
  // The template's own variables live in a scope above the globals and the input.
  captured_.push_back(std::make_unique<Scope>());
  captured_.back()->parent = scope_;
  captured_.back()->is_captured = true;
}

Interpreter::~Interpreter() {
  for (const auto& object : namespaces_) object->attributes.clear();
  for (const auto& scope : captured_) scope->variables.clear();
}

void Interpreter::set_variable(const std::string& name, Value value) {
  const auto it = program_.symbols.find(name);
  if (it != program_.symbols.end()) captured_.front()->set(it->second, std::move(value));
}

Text Interpreter::run() {
  scope_ = captured_[1].get();
  Text out;
  output_ = &out;
  run_body(program_.body);
  output_ = nullptr;
  return out;
}

void Interpreter::capture(Scope* scope) {
  for (; scope != nullptr && !scope->is_captured; scope = scope->parent) {
    budget_.take_memory(kScopeBytes);
    scope->is_captured = true;
  }
}

void Interpreter::emit(const Text& text) {
  const size_t total = output_->size() + text.size();
  budget_.check_string(total);
  budget_.work(text.size());
  const size_t old = output_->capacity();
  if (total > old) {
    const size_t wanted = std::max<size_t>(total, std::min<size_t>(2 * old, budget_.max_string_bytes()));
    budget_.take_memory(wanted);
    output_->reserve(wanted);
    // The string may round up; what is given back later is its real capacity.
    budget_.take_memory(output_->capacity() - wanted);
    budget_.give_memory(old > Capture::kInline ? old : 0);
  }
  output_->append(text);
}

Value Interpreter::make_namespace(std::shared_ptr<NamespaceObject> object) {
  namespaces_.push_back(object);
  return Value(Kind::kNamespace, std::move(object));
}

Interpreter::Flow Interpreter::run_body(const Body& body) {
  const DepthGuard depth(frames_, max_frames_);
  for (const Statement* statement : body) {
    const Flow flow = run_statement(*statement);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run_statement(const Statement& statement) {
  budget_.step();
  line_ = statement.line;
  switch (statement.type) {
    case StatementType::kData: emit(statement.value.text()); break;
    case StatementType::kPrint:
      for (const Expr* expression : statement.expressions) {
        const Value value = evaluate(expression);
        value.is_string() ? emit(value.text()) : emit(to_text(heap_, value));
      }
      break;
    case StatementType::kIf: return run_if(statement);
    case StatementType::kFor: run_for(statement, evaluate(statement.expression), scope_, 0); break;
    case StatementType::kSet: run_set(statement); break;
    case StatementType::kSetBlock: run_set_block(statement); break;
    case StatementType::kMacro: scope_->set(statement.symbol, make_macro(statement.macro)); break;
    case StatementType::kCallBlock: run_call_block(statement); break;
    case StatementType::kFilterBlock: run_filter_block(statement); break;
    case StatementType::kWith: return run_with(statement);
    case StatementType::kGeneration: {
      const ScopeGuard scope(*this, scope_);
      run_body(statement.body);
      break;
    }
    case StatementType::kBreak: return Flow::kBreak;
    case StatementType::kContinue: return Flow::kContinue;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run_if(const Statement& statement) {
  for (const Branch& branch : statement.branches) {
    if (branch.test == nullptr || is_true(evaluate(branch.test))) return run_body(branch.body);
  }
  return Flow::kNormal;
}

bool Interpreter::loop_fetch(LoopObject& loop, Value& out) {
  while (loop.position < loop.items.size()) {
    budget_.step();
    Value item = loop.items[loop.position++];
    if (loop.statement.test != nullptr && !loop.is_filtered) {
      const ScopeGuard scope(*this, loop.outer);
      assign(*loop.statement.target, item);
      if (!is_true(evaluate(loop.statement.test))) continue;
    }
    out = std::move(item);
    return true;
  }
  return false;
}

bool Interpreter::loop_peek(LoopObject& loop, Value& out) {
  if (!loop.has_peeked) {
    loop.peek_is_end = !loop_fetch(loop, loop.peeked);
    loop.has_peeked = true;
  }
  if (!loop.peek_is_end) out = loop.peeked;
  return !loop.peek_is_end;
}

bool Interpreter::loop_advance(LoopObject& loop, Value& out) {
  if (!loop_peek(loop, out)) return false;
  loop.has_peeked = false;
  loop.peeked = Value();
  ++loop.index0;
  loop.before = std::exchange(loop.current, out);
  return true;
}

int64_t Interpreter::loop_length(LoopObject& loop) {
  if (loop.length >= 0) return loop.length;
  Values rest;
  Value item;
  while (loop_fetch(loop, item)) rest.push_back(item);
  loop.length = static_cast<int64_t>(rest.size()) + loop.index0 + 1 + (loop.has_peeked && !loop.peek_is_end ? 1 : 0);
  loop.items = std::move(rest);
  loop.is_filtered = true;
  loop.position = 0;
  return loop.length;
}

Interpreter::Flow Interpreter::run_for(const Statement& statement, const Value& items, Scope* outer, int64_t depth0) {
  auto loop = std::make_shared<LoopObject>(&budget_, statement, iterate(heap_, items), outer);
  loop->depth0 = depth0;
  if (statement.test == nullptr) loop->length = static_cast<int64_t>(loop->items.size());
  if (statement.is_recursive) capture(outer);
  const Value loop_value(Kind::kLoop, loop);
  const auto it = program_.symbols.find("loop");
  const bool uses_loop = it != program_.symbols.end();
  bool completed_one = false;
  {
    ScopeGuard scope(*this, outer);
    Value item;
    while (loop_advance(*loop, item)) {
      scope.renew();
      if (uses_loop) scope_->set(it->second, loop_value);
      assign(*statement.target, item);
      const Flow flow = run_body(statement.body);
      if (flow == Flow::kBreak) break;
      completed_one |= flow == Flow::kNormal;
    }
    loop->is_over = true;
    loop->changed_value = Value();
  }
  if (!completed_one && !statement.else_body.empty()) {
    const ScopeGuard scope(*this, outer);
    return run_body(statement.else_body);
  }
  return Flow::kNormal;
}

Value Interpreter::loop_call(LoopObject& loop, const Value& items) {
  if (!loop.statement.is_recursive) fail("The loop must have the 'recursive' marker to be called recursively.");
  const DepthGuard depth(calls_, max_calls_);
  Capture capture_output(*this);
  run_for(loop.statement, items, loop.outer, loop.depth0 + 1);
  return capture_output.take();
}

void Interpreter::check_namespace_targets(const Expr& target) {
  for (const Expr* item : target.items) check_namespace_targets(*item);
  if (target.type != ExprType::kNamespaceTarget) return;
  const Value* object = scope_->find(target.symbol, budget_);
  if (object == nullptr || !object->is(Kind::kNamespace)) fail("cannot assign attribute on non-namespace object");
}

void Interpreter::assign(const Expr& target, const Value& value) {
  if (target.type == ExprType::kName) {
    budget_.steps(scope_->variables.size() / 32);
    scope_->set(target.symbol, value);
    return;
  }
  if (target.type == ExprType::kNamespaceTarget) {
    const Value object = *scope_->find(target.symbol, budget_);
    object.object<NamespaceObject>().set(target.text, value);
    return;
  }
  PAGODA_CHECK(target.type == ExprType::kTuple);
  const Values items = iterate(heap_, value);
  if (items.size() != target.items.size()) {
    fail((items.size() > target.items.size() ? "too many values to unpack (expected " : "not enough values to unpack (expected ") +
         std::to_string(target.items.size()) + ", got " + std::to_string(items.size()) + ")");
  }
  for (size_t i = 0; i < items.size(); ++i) assign(*target.items[i], items[i]);
}

void Interpreter::run_set(const Statement& statement) {
  check_namespace_targets(*statement.target);
  assign(*statement.target, evaluate(statement.expression));
}

void Interpreter::run_set_block(const Statement& statement) {
  Value value;
  {
    const ScopeGuard scope(*this, scope_);
    Capture text(*this);
    run_body(statement.body);
    value = text.take();
    if (statement.expression != nullptr) {
      const Value outer = std::exchange(filter_input_, value);
      value = evaluate(statement.expression);
      filter_input_ = outer;
    }
  }
  check_namespace_targets(*statement.target);
  assign(*statement.target, value);
}

void Interpreter::run_filter_block(const Statement& statement) {
  Value value;
  {
    const ScopeGuard scope(*this, scope_);
    Capture text(*this);
    run_body(statement.body);
    const Value outer = std::exchange(filter_input_, text.take());
    value = evaluate(statement.expression);
    filter_input_ = outer;
  }
  emit(to_text(heap_, value));
}

void Interpreter::run_call_block(const Statement& statement) {
  const Expr& call_node = *statement.expression;
  const Value callee = evaluate(call_node.left);
  CallArguments arguments = evaluate_arguments(call_node.call);
  arguments.keyword.emplace_back("caller", make_macro(statement.macro));
  line_ = call_node.line;
  emit(to_text(heap_, call(callee, arguments)));
}

Interpreter::Flow Interpreter::run_with(const Statement& statement) {
  const Values values = evaluate_all(statement.expressions);
  const ScopeGuard scope(*this, scope_);
  for (size_t i = 0; i < values.size(); ++i) assign(*statement.targets[i], values[i]);
  return run_body(statement.body);
}

Value Interpreter::make_macro(const MacroSyntax& syntax) {
  capture(scope_);
  return Value(Kind::kMacro, std::make_shared<MacroObject>(&budget_, syntax, scope_));
}

Value Interpreter::call_macro(const MacroObject& macro, CallArguments& arguments) {
  const DepthGuard depth(calls_, max_calls_);
  ScopeGuard scope(*this, macro.defined_in);
  bind_macro(macro, arguments, scope.scope());
  Capture text(*this);
  run_body(macro.syntax.body);
  return text.take();
}

void Interpreter::bind_macro(const MacroObject& macro, CallArguments& arguments, Scope& scope) {
  const MacroSyntax& syntax = macro.syntax;
  const auto take_keyword = [&arguments](const std::string& name, Value& out) {
    for (auto it = arguments.keyword.begin(); it != arguments.keyword.end(); ++it) {
      if (it->first != name) continue;
      out = std::move(it->second);
      arguments.keyword.erase(it);
      return true;
    }
    return false;
  };
  const auto symbol_of = [this](const char* name) { return program_.symbols.at(name); };
  for (size_t i = 0; i < syntax.parameters.size(); ++i) {
    const auto& [symbol, name] = syntax.parameters[i];
    Value value;
    if (i < arguments.positional.size()) {
      value = arguments.positional[i];
    } else if (!take_keyword(name, value)) {
      const size_t first_default = syntax.parameters.size() - syntax.defaults.size();
      value = i >= first_default ? evaluate(syntax.defaults[i - first_default])
                                 : heap_.undefined("parameter '" + name + "' was not provided");
    }
    scope.set(symbol, std::move(value));
  }
  if (syntax.uses_caller) {
    Value caller;
    if (!take_keyword("caller", caller)) caller = heap_.undefined("No caller defined");
    scope.set(symbol_of("caller"), std::move(caller));
  }
  if (syntax.uses_kwargs) {
    auto rest = heap_.dict();
    for (auto& [name, value] : arguments.keyword) rest->set(heap_.string(name), value);
    scope.set(symbol_of("kwargs"), Value(Kind::kDict, std::move(rest)));
  } else if (!arguments.keyword.empty()) {
    fail("macro '" + syntax.name + "' takes no keyword argument '" + arguments.keyword.front().first + "'");
  }
  const size_t num_extra = arguments.positional.size() - std::min(arguments.positional.size(), syntax.parameters.size());
  if (syntax.uses_varargs) {
    scope.set(symbol_of("varargs"),
              heap_.tuple(Values(arguments.positional.end() - static_cast<ptrdiff_t>(num_extra), arguments.positional.end())));
  } else if (num_extra > 0) {
    fail("macro '" + syntax.name + "' takes not more than " + std::to_string(syntax.parameters.size()) + " argument(s)");
  }
}

}  // namespace pagoda::jinja
