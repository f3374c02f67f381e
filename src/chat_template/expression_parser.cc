#include "chat_template/filters.h"
#include "chat_template/parser_core.h"

namespace pagoda::jinja {
namespace {

// A node takes about 350 bytes, so a parsed template stays below 32 MiB; the largest template of llama.cpp's collection
// has about 5,000 nodes.
constexpr size_t kMaxNodes = 65'536;

Value constant_text(std::string text) {
  return Value(Kind::kString, std::make_shared<StringObject>(nullptr, Text(std::move(text), true), false));
}

}  // namespace

ExpressionParser::Nesting::Nesting(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.depth_ > parser_.max_depth_) {
    parser_.fail_here("blocks and expressions nest more than " + std::to_string(parser_.max_depth_) + " deep");
  }
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!at_name(name)) return false;
  next();
  return true;
}
bool ExpressionParser::skip_operator(std::string_view op) {
  if (!at_operator(op)) return false;
  next();
  return true;
}
void ExpressionParser::expect_operator(std::string_view op) {
  if (!skip_operator(op)) fail_here("expected '" + std::string(op) + "', got '" + current().text + "'");
}
std::string ExpressionParser::expect_name() {
  if (current().type != TokenType::kName) fail_here("expected a name, got '" + current().text + "'");
  return next().text;
}
void ExpressionParser::expect(TokenType type, std::string_view what) {
  if (current().type != type) fail_here("expected " + std::string(what) + ", got '" + current().text + "'");
  next();
}

Expr* ExpressionParser::make(ExprType type, uint32_t line) {
  if (program_.expressions.size() >= kMaxNodes) fail_limit("the template has more than 65536 expressions");
  Expr& node = program_.expressions.emplace_back();
  node.type = type;
  node.line = line;
  return &node;
}

Expr* ExpressionParser::make_name(const Token& token) {
  Expr* node = make(ExprType::kName, token.line);
  node->text = token.text;
  node->symbol = program_.symbol(token.text);
  return node;
}

void ExpressionParser::use_name(const Expr* node) {
  const bool is_known = node->type == ExprType::kFilter ? find_filter(node->text) != nullptr : find_test(node->text) != nullptr;
  if (!is_known) named_.push_back({node, frame_, false});
}
void ExpressionParser::soften(size_t from) {
  for (size_t i = from; i < named_.size(); ++i) {
    if (named_[i].frame == frame_) named_[i].is_soft = true;
  }
}
void ExpressionParser::check_names() const {
  for (const NamedUse& use : named_) {
    if (use.is_soft) continue;
    fail_at(use.node->line,
            std::string(use.node->type == ExprType::kFilter ? "no filter named '" : "no test named '") + use.node->text + "'");
  }
}

const Expr* ExpressionParser::parse_expression(bool allow_conditional) {
  const Nesting nesting(*this);
  if (!allow_conditional) return parse_or();
  const size_t from = num_named();
  const uint32_t line = current().line;
  const Expr* result = parse_or();
  while (skip_name("if")) {
    Expr* node = make(ExprType::kConditional, line);
    node->left = parse_or();
    node->right = result;
    if (skip_name("else")) node->third = parse_expression();
    soften(from);
    result = node;
  }
  return result;
}

const Expr* ExpressionParser::parse_or() {
  const Expr* left = parse_and();
  while (at_name("or")) {
    Expr* node = make(ExprType::kOr, next().line);
    node->left = left;
    node->right = parse_and();
    left = node;
  }
  return left;
}

const Expr* ExpressionParser::parse_and() {
  const Expr* left = parse_not();
  while (at_name("and")) {
    Expr* node = make(ExprType::kAnd, next().line);
    node->left = left;
    node->right = parse_not();
    left = node;
  }
  return left;
}

const Expr* ExpressionParser::parse_not() {
  if (!at_name("not")) return parse_compare();
  const Nesting nesting(*this);
  Expr* node = make(ExprType::kNot, next().line);
  node->left = parse_not();
  return node;
}

const Expr* ExpressionParser::parse_compare() {
  const Expr* left = parse_sum();
  Expr* node = nullptr;
  while (true) {
    std::string op;
    for (const std::string_view known : {"==", "!=", "<", "<=", ">", ">="}) {
      if (at_operator(known)) op = known;
    }
    if (at_name("in")) op = "in";
    if (at_name("not") && look().type == TokenType::kName && look().text == "in") {
      next();
      op = "not in";
    }
    if (op.empty()) return node == nullptr ? left : node;
    const uint32_t line = next().line;
    if (node == nullptr) {
      node = make(ExprType::kCompare, line);
      node->left = left;
    }
    node->operators.push_back(op);
    node->items.push_back(parse_sum());
  }
}

const Expr* ExpressionParser::parse_sum() {
  const Expr* left = parse_concat();
  while (at_operator("+") || at_operator("-")) {
    const Token op = next();
    Expr* node = make(ExprType::kBinary, op.line);
    node->text = op.text;
    node->left = left;
    node->right = parse_concat();
    left = node;
  }
  return left;
}

const Expr* ExpressionParser::parse_concat() {
  const Expr* first = parse_product();
  if (!at_operator("~")) return first;
  Expr* node = make(ExprType::kConcat, current().line);
  node->items.push_back(first);
  while (skip_operator("~")) node->items.push_back(parse_product());
  return node;
}

const Expr* ExpressionParser::parse_product() {
  const Expr* left = parse_power();
  while (at_operator("*") || at_operator("/") || at_operator("//") || at_operator("%")) {
    const Token op = next();
    Expr* node = make(ExprType::kBinary, op.line);
    node->text = op.text;
    node->left = left;
    node->right = parse_power();
    left = node;
  }
  return left;
}

const Expr* ExpressionParser::parse_power() {
  const Expr* left = parse_unary(true);
  while (at_operator("**")) {
    Expr* node = make(ExprType::kBinary, next().line);
    node->text = "**";
    node->left = left;
    node->right = parse_unary(true);
    left = node;
  }
  return left;
}

const Expr* ExpressionParser::parse_unary(bool with_filter) {
  const Expr* result = nullptr;
  if (at_operator("-") || at_operator("+")) {
    const Nesting nesting(*this);
    const Token op = next();
    Expr* node = make(op.text == "-" ? ExprType::kNegate : ExprType::kPlus, op.line);
    node->left = parse_unary(false);
    result = node;
  } else {
    result = parse_primary(false);
  }
  result = parse_postfix(result);
  return with_filter ? parse_filter_expression(result) : result;
}

const Expr* ExpressionParser::parse_constant() {
  const Token token = next();
  Expr* node = make(ExprType::kConstant, token.line);
  if (token.type == TokenType::kInteger) {
    node->value = Value::integer(token.integer);
  } else if (token.type == TokenType::kFloat) {
    node->value = Value::number(token.number);
  } else {
    std::string text = token.text;
    while (current().type == TokenType::kString) text += next().text;
    node->value = constant_text(std::move(text));
  }
  return node;
}

const Expr* ExpressionParser::parse_primary(bool allow_namespace) {
  const Token& token = current();
  if (token.type == TokenType::kString || token.type == TokenType::kInteger || token.type == TokenType::kFloat) {
    return parse_constant();
  }
  if (token.type == TokenType::kName) {
    const Token name = next();
    const std::string& text = name.text;
    const bool is_true_word = text == "true" || text == "True";
    const bool is_none_word = text == "none" || text == "None";
    if (is_true_word || is_none_word || text == "false" || text == "False") {
      Expr* node = make(ExprType::kConstant, name.line);
      node->value = is_none_word ? Value::none() : Value::boolean(is_true_word);
      return node;
    }
    if (!allow_namespace || !at_operator(".")) return make_name(name);
    next();
    Expr* node = make(ExprType::kNamespaceTarget, name.line);
    node->symbol = program_.symbol(text);
    node->text = expect_name();
    return node;
  }
  if (at_operator("(")) {
    next();
    const Expr* node = parse_tuple({.has_parentheses = true});
    expect_operator(")");
    return node;
  }
  if (at_operator("[")) return parse_list();
  if (at_operator("{")) return parse_dict();
  fail_here(token.type == TokenType::kOperator ? "unexpected '" + token.text + "'" : "expected an expression");
}

const Expr* ExpressionParser::parse_list() {
  Expr* node = make(ExprType::kList, next().line);
  while (!at_operator("]")) {
    if (!node->items.empty()) expect_operator(",");
    if (at_operator("]")) break;
    node->items.push_back(parse_expression());
  }
  expect_operator("]");
  return node;
}

const Expr* ExpressionParser::parse_dict() {
  Expr* node = make(ExprType::kDict, next().line);
  while (!at_operator("}")) {
    if (!node->items.empty()) expect_operator(",");
    if (at_operator("}")) break;
    node->items.push_back(parse_expression());
    expect_operator(":");
    node->items.push_back(parse_expression());
  }
  expect_operator("}");
  return node;
}

bool ExpressionParser::at_tuple_end(const TupleRules& rules) const {
  const TokenType type = current().type;
  return type == TokenType::kVariableEnd || type == TokenType::kBlockEnd || at_operator(")") ||
         (!rules.end_name.empty() && at_name(rules.end_name));
}

const Expr* ExpressionParser::parse_tuple(const TupleRules& rules) {
  const Nesting nesting(*this);
  const uint32_t line = current().line;
  ExprList items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) expect_operator(",");
    if (at_tuple_end(rules)) break;
    items.push_back(rules.is_target ? parse_primary(rules.allow_namespace) : parse_expression(rules.allow_conditional));
    if (!at_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return items[0];
    if (!rules.has_parentheses) fail_here("expected an expression, got '" + current().text + "'");
  }
  Expr* node = make(ExprType::kTuple, line);
  node->items = std::move(items);
  return node;
}

const Expr* ExpressionParser::parse_target(const TupleRules& rules) {
  TupleRules target_rules = rules;
  target_rules.is_target = true;
  const Expr* node = parse_tuple(target_rules);
  std::vector<const Expr*> pending{node};
  while (!pending.empty()) {
    const Expr* part = pending.back();
    pending.pop_back();
    if (part->type == ExprType::kTuple) {
      pending.insert(pending.end(), part->items.begin(), part->items.end());
    } else if (part->type != ExprType::kName && part->type != ExprType::kNamespaceTarget) {
      fail_at(part->line, "can't assign to this expression");
    }
  }
  return node;
}

const Expr* ExpressionParser::parse_postfix(const Expr* node) {
  while (true) {
    if (at_operator(".") || at_operator("[")) node = parse_subscript(node);
    else if (at_operator("(")) node = parse_call(node);
    else return node;
  }
}

const Expr* ExpressionParser::parse_filter_expression(const Expr* node) {
  while (true) {
    if (at_operator("|")) node = parse_filter_chain(node, false);
    else if (at_name("is")) node = parse_test(node);
    else if (at_operator("(")) node = parse_call(node);
    else return node;
  }
}

const Expr* ExpressionParser::parse_subscript(const Expr* node) {
  const Token open = next();
  if (open.text == ".") {
    const Token name = next();
    if (name.type == TokenType::kName) {
      Expr* attribute = make(ExprType::kAttribute, open.line);
      attribute->left = node;
      attribute->text = name.text;
      attribute->value = constant_text(name.text);
      return attribute;
    }
    if (name.type != TokenType::kInteger) fail_at(name.line, "expected a name or number after '.'");
    Expr* index = make(ExprType::kConstant, name.line);
    index->value = Value::integer(name.integer);
    Expr* subscript = make(ExprType::kSubscript, open.line);
    subscript->left = node;
    subscript->right = index;
    return subscript;
  }
  const Expr* result = parse_subscribed(node);
  if (at_operator(",")) {
    if (result->type == ExprType::kSlice) fail_here("a slice cannot be part of a tuple index");
    Expr* tuple = make(ExprType::kTuple, open.line);
    tuple->items.push_back(result->right);
    while (skip_operator(",")) {
      if (at_operator("]")) break;
      tuple->items.push_back(parse_expression());
    }
    Expr* subscript = make(ExprType::kSubscript, open.line);
    subscript->left = node;
    subscript->right = tuple;
    result = subscript;
  }
  expect_operator("]");
  return result;
}

const Expr* ExpressionParser::parse_subscribed(const Expr* node) {
  const uint32_t line = current().line;
  const auto at_end = [this] { return at_operator("]") || at_operator(",") || at_operator(":"); };
  const Expr* first = at_operator(":") ? nullptr : parse_expression();
  if (!at_operator(":")) {
    Expr* subscript = make(ExprType::kSubscript, line);
    subscript->left = node;
    subscript->right = first;
    return subscript;
  }
  next();
  Expr* slice = make(ExprType::kSlice, line);
  slice->left = node;
  slice->items = {first, at_end() ? nullptr : parse_expression(), nullptr};
  if (skip_operator(":") && !at_end()) slice->items[2] = parse_expression();
  return slice;
}

void ExpressionParser::parse_arguments(CallSyntax& call) {
  const uint32_t line = current().line;
  expect_operator("(");
  const auto ensure = [line](bool condition) {
    if (!condition) fail_at(line, "invalid syntax for function call expression");
  };
  bool needs_comma = false;
  while (!at_operator(")")) {
    if (needs_comma) {
      expect_operator(",");
      if (at_operator(")")) break;
    }
    if (skip_operator("*")) {
      ensure(call.star == nullptr && call.double_star == nullptr);
      call.star = parse_expression();
    } else if (skip_operator("**")) {
      ensure(call.double_star == nullptr);
      call.double_star = parse_expression();
    } else if (current().type == TokenType::kName && look().type == TokenType::kOperator && look().text == "=") {
      ensure(call.double_star == nullptr);
      std::string name = next().text;
      next();
      for (const auto& known : call.keyword) ensure(known.first != name);
      call.keyword.emplace_back(std::move(name), parse_expression());
    } else {
      ensure(call.star == nullptr && call.double_star == nullptr && call.keyword.empty());
      call.positional.push_back(parse_expression());
    }
    needs_comma = true;
  }
  expect_operator(")");
}

const Expr* ExpressionParser::parse_call(const Expr* node) {
  Expr* call = make(ExprType::kCall, current().line);
  call->left = node;
  parse_arguments(call->call);
  return call;
}

std::string ExpressionParser::parse_dotted_name() {
  std::string name = expect_name();
  while (skip_operator(".")) name += "." + expect_name();
  return name;
}

const Expr* ExpressionParser::parse_filter_chain(const Expr* node, bool starts_inline) {
  while (starts_inline || at_operator("|")) {
    if (!starts_inline) next();
    starts_inline = false;
    Expr* filter = make(ExprType::kFilter, current().line);
    filter->left = node;
    filter->text = parse_dotted_name();
    if (at_operator("(")) parse_arguments(filter->call);
    use_name(filter);
    node = filter;
  }
  return node;
}

const Expr* ExpressionParser::parse_test(const Expr* node) {
  const uint32_t line = next().line;
  const bool is_negated = skip_name("not");
  Expr* test = make(ExprType::kTest, line);
  test->left = node;
  test->text = parse_dotted_name();
  const TokenType type = current().type;
  const bool starts_value = type == TokenType::kName || type == TokenType::kString || type == TokenType::kInteger ||
                            type == TokenType::kFloat || at_operator("[") || at_operator("{");
  if (at_operator("(")) {
    parse_arguments(test->call);
  } else if (starts_value && !at_name("else") && !at_name("or") && !at_name("and")) {
    if (at_name("is")) fail_here("tests cannot be chained with is");
    test->call.positional.push_back(parse_postfix(parse_primary(false)));
  }
  use_name(test);
  if (!is_negated) return test;
  Expr* negation = make(ExprType::kNot, line);
  negation->left = test;
  return negation;
}

}  // namespace pagoda::jinja
