#pragma once
// Walks a Program and writes text. One Interpreter is one render.
//
// Scopes follow jinja2: loops (each turn), macros, call blocks, `with`, filter and set blocks open one; `if` does not.
// A macro keeps the scope it was made in, so a scope that was captured lives until the render ends.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chat_template/ast.h"
#include "chat_template/chat_template.h"
#include "chat_template/value.h"

namespace pagoda::jinja {

struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<uint32_t, Value>> variables;
  bool is_captured = false;

  void set(uint32_t symbol, Value value);
  /// Here or further out; charges the search.
  const Value* find(uint32_t symbol, Budget& budget) const;
};

class MacroObject : public Object {
 public:
  MacroObject(Budget* budget, const MacroSyntax& s, Scope* d) : Object(budget, sizeof(*this)), syntax(s), defined_in(d) {}
  const std::string& name() const { return syntax.name; }
  const MacroSyntax& syntax;
  Scope* defined_in;
};

/// The `loop` variable and the state of the loop it belongs to.
class LoopObject : public Object {
 public:
  LoopObject(Budget* budget, const Statement& s, Values v, Scope* o);
  int64_t known_length() const { return length >= 0 ? length : index0 + 1; }
  const Statement& statement;
  Values items;
  Scope* outer;
  size_t position = 0;
  int64_t index0 = -1;
  int64_t depth0 = 0;
  int64_t length = -1;  ///< -1 while a loop with a filter has not been counted
  bool is_filtered = false;  ///< what is left in `items` has passed the loop's filter
  bool has_peeked = false, peek_is_end = false;
  Value peeked, before, current;
  bool has_changed_value = false;
  Value changed_value;
  bool is_over = false;
};

class Interpreter {
 public:
  Interpreter(const Program& program, const ChatTemplateLimits& limits, int64_t now_unix_seconds);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  void set_variable(const std::string& name, Value value);
  Text run();

  const Heap& heap() const { return heap_; }
  Budget& budget() { return budget_; }
  int64_t now_unix_seconds() const { return now_; }
  uint32_t line() const { return line_; }

  /// jinja2's environment.getattr and getitem: attribute first, or item first.
  Value get_attribute(const Value& object, const Value& name);
  Value get_item_or_attribute(const Value& object, const Value& key);
  /// Only an attribute, as the `attr` filter wants; false when there is none.
  bool find_attribute(const Value& object, const std::string& name, Value& out);
  Value call(const Value& callee, CallArguments& arguments);
  Value apply_filter(const std::string& name, const Value& input, CallArguments& arguments);
  bool apply_test(const std::string& name, const Value& input, CallArguments& arguments);
  /// Registers a namespace so that cycles through it end with the render.
  Value make_namespace(std::shared_ptr<NamespaceObject> object);

  bool loop_peek(LoopObject& loop, Value& out);  ///< false at the end
  int64_t loop_length(LoopObject& loop);
  Value loop_call(LoopObject& loop, const Value& items);

 private:
  enum class Flow : uint8_t { kNormal, kBreak, kContinue };
  class ScopeGuard;
  class DepthGuard;
  class Capture;

  Flow run_body(const Body& body);
  Flow run_statement(const Statement& statement);
  Flow run_if(const Statement& statement);
  Flow run_for(const Statement& statement, const Value& items, Scope* outer, int64_t depth0);
  bool loop_fetch(LoopObject& loop, Value& out);
  bool loop_advance(LoopObject& loop, Value& out);
  void run_set(const Statement& statement);
  void run_set_block(const Statement& statement);
  void run_call_block(const Statement& statement);
  void run_filter_block(const Statement& statement);
  Flow run_with(const Statement& statement);
  void assign(const Expr& target, const Value& value);
  void check_namespace_targets(const Expr& target);

  Value evaluate(const Expr* node);
  Value evaluate_leaf(const Expr& node);
  Value apply(const Expr& node, Value left);
  Value evaluate_compare(const Expr& node, Value left);
  Value evaluate_dict(const Expr& node);
  Value evaluate_name(const Expr& node);
  Value concat(const Expr& node);
  Values evaluate_all(const ExprList& list);
  CallArguments evaluate_arguments(const CallSyntax& call);
  Value call_macro(const MacroObject& macro, CallArguments& arguments);
  void bind_macro(const MacroObject& macro, CallArguments& arguments, Scope& scope);
  Value make_macro(const MacroSyntax& syntax);
  Value loop_attribute(const Value& loop, const std::string& name);

  void capture(Scope* scope);
  void emit(const Text& text);

  const Program& program_;
  Budget budget_;
  Heap heap_;
  int64_t now_;
  uint32_t max_calls_, max_frames_;
  uint32_t calls_ = 0, frames_ = 0;
  uint32_t line_ = 1;
  Text* output_ = nullptr;
  Value filter_input_;
  Scope* scope_ = nullptr;
  std::deque<std::unique_ptr<Scope>> captured_;
  std::vector<std::shared_ptr<NamespaceObject>> namespaces_;
  std::vector<const Expr*> spine_;
};

}  // namespace pagoda::jinja
