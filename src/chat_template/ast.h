#pragma once
// The parsed template. Nodes live in one list (Program::nodes) and point at each other with plain pointers, so freeing
// a long chain of operators needs no recursion. A Program is never changed after parsing.

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chat_template/value.h"

namespace pagoda::jinja {

enum class ExprType : uint8_t {
  kConstant,   // value
  kName,       // symbol
  kTuple,      // items
  kList,       // items
  kDict,       // items: key, value, key, value ...
  kAttribute,  // left . text
  kSubscript,  // left [ right ]
  kSlice,      // left [ items[0] : items[1] : items[2] ], null where absent
  kCall,       // left ( call )
  kFilter,     // left | text ( call ); left is null in a filter block
  kTest,       // left is text ( call )
  kBinary,     // left text right
  kConcat,     // items joined by ~
  kAnd,
  kOr,
  kNot,      // left
  kNegate,   // left
  kPlus,     // left
  kCompare,  // left, then (operators[i], items[i]) ...
  kConditional,  // right if left else third (third may be null)
  kNamespaceTarget,  // symbol . text, only as an assignment target
};

struct Expr;
using ExprList = std::vector<const Expr*>;

struct CallSyntax {
  ExprList positional;
  std::vector<std::pair<std::string, const Expr*>> keyword;
  const Expr* star = nullptr;
  const Expr* double_star = nullptr;
};

struct Expr {
  ExprType type = ExprType::kConstant;
  uint32_t line = 1;
  uint32_t symbol = 0;
  std::string text;
  Value value;
  const Expr* left = nullptr;
  const Expr* right = nullptr;
  const Expr* third = nullptr;
  ExprList items;
  std::vector<std::string> operators;
  CallSyntax call;
};

enum class StatementType : uint8_t {
  kData,   // value: literal text
  kPrint,  // expression
  kIf,     // branches; the last may have no test
  kFor,
  kSet,         // target = expression
  kSetBlock,    // target = body | filter
  kMacro,
  kCallBlock,   // macro + expression (the call)
  kFilterBlock,  // expression is the filter chain
  kWith,        // targets, expressions
  kGeneration,  // body in a scope of its own
  kBreak,
  kContinue,
};

struct Statement;
using Body = std::vector<const Statement*>;

struct Branch {
  const Expr* test = nullptr;
  Body body;
};

struct MacroSyntax {
  std::string name;
  std::vector<std::pair<uint32_t, std::string>> parameters;
  ExprList defaults;  ///< for the last parameters
  Body body;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};

struct Statement {
  StatementType type = StatementType::kData;
  uint32_t line = 1;
  Value value;
  const Expr* target = nullptr;
  const Expr* expression = nullptr;  ///< for: the iterable
  const Expr* test = nullptr;        ///< for: the filter
  std::vector<Branch> branches;
  Body body, else_body;
  bool is_recursive = false;
  uint32_t symbol = 0;  ///< macro: where it is stored
  MacroSyntax macro;
  ExprList targets, expressions;
};

struct Program {
  std::deque<Expr> expressions;
  std::deque<Statement> statements;
  Body body;
  std::vector<std::string> symbol_names;
  std::unordered_map<std::string, uint32_t> symbols;

  uint32_t symbol(const std::string& name) {
    const auto [it, is_new] = symbols.try_emplace(name, static_cast<uint32_t>(symbol_names.size()));
    if (is_new) symbol_names.push_back(name);
    return it->second;
  }
};

}  // namespace pagoda::jinja
