#pragma once
// What the statement and the expression parser share: the token cursor, node making and the nesting limit.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat_template/ast.h"
#include "chat_template/lexer.h"

namespace pagoda::jinja {

class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, Program& program, uint32_t max_depth)
      : tokens_(std::move(tokens)), program_(program), max_depth_(max_depth) {}

  /// How parse_tuple reads its items and where it stops.
  struct TupleRules {
    bool allow_conditional = true;
    bool is_target = false;           ///< only names and literals
    bool allow_namespace = false;     ///< `a.b` as an assignment target
    bool has_parentheses = false;     ///< an empty tuple is allowed
    std::string_view end_name = {};   ///< a name that ends the tuple too
  };

 protected:
  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token next() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }
  bool at_name(std::string_view name) const { return current().type == TokenType::kName && current().text == name; }
  bool at_operator(std::string_view op) const { return current().type == TokenType::kOperator && current().text == op; }
  bool skip_name(std::string_view name);
  bool skip_operator(std::string_view op);
  void expect_operator(std::string_view op);
  std::string expect_name();
  void expect(TokenType type, std::string_view what);
  [[noreturn]] void fail_here(const std::string& message) const { fail_at(current().line, message); }

  Expr* make(ExprType type, uint32_t line);
  Expr* make_name(const Token& token);

  const Expr* parse_expression(bool allow_conditional = true);
  const Expr* parse_tuple(const TupleRules& rules);
  const Expr* parse_target(const TupleRules& rules);
  const Expr* parse_filter_chain(const Expr* node, bool starts_inline);
  /// Unknown filters and tests made since node `from` in the current frame fail only when they run.
  void soften(size_t from);
  /// Reports an unknown filter or test that no `if` guards.
  void check_names() const;

  // Counts nesting for its lifetime.
  class Nesting {
   public:
    explicit Nesting(ExpressionParser& parser);
    ~Nesting() { --parser_.depth_; }

   private:
    ExpressionParser& parser_;
  };
  // jinja2 treats the inside of a loop, macro or captured block as a frame of its own.
  class Frame {
   public:
    explicit Frame(ExpressionParser& parser) : parser_(parser), outer_(parser.frame_) { parser_.frame_ = ++parser_.frames_; }
    ~Frame() { parser_.frame_ = outer_; }

   private:
    ExpressionParser& parser_;
    uint32_t outer_;
  };

  Program& program() { return program_; }
  size_t num_named() const { return named_.size(); }

 private:
  struct NamedUse {  // a filter or test with an unknown name
    const Expr* node;
    uint32_t frame;
    bool is_soft;
  };

  const Expr* parse_or();
  const Expr* parse_and();
  const Expr* parse_not();
  const Expr* parse_compare();
  const Expr* parse_sum();
  const Expr* parse_concat();
  const Expr* parse_product();
  const Expr* parse_power();
  const Expr* parse_unary(bool with_filter);
  const Expr* parse_primary(bool allow_namespace);
  const Expr* parse_postfix(const Expr* node);
  const Expr* parse_filter_expression(const Expr* node);
  const Expr* parse_subscript(const Expr* node);
  const Expr* parse_subscribed(const Expr* node);
  const Expr* parse_call(const Expr* node);
  const Expr* parse_test(const Expr* node);
  const Expr* parse_list();
  const Expr* parse_dict();
  const Expr* parse_constant();
  void parse_arguments(CallSyntax& call);
  std::string parse_dotted_name();
  void use_name(const Expr* node);
  bool at_tuple_end(const TupleRules& rules) const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  Program& program_;
  uint32_t max_depth_;
  uint32_t depth_ = 0;
  uint32_t frame_ = 0, frames_ = 0;
  std::vector<NamedUse> named_;
};

}  // namespace pagoda::jinja
