#include "chat_template/parser.h"

#include <algorithm>

#include "chat_template/parser_core.h"

namespace pagoda::jinja {
namespace {

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  void run() {
    program().body = parse_body({});
    check_names();
  }

 private:
  using EndNames = std::vector<std::string_view>;

  Statement* make_statement(StatementType type) {
    Statement& statement = program().statements.emplace_back();
    statement.type = type;
    statement.line = current().line;
    return &statement;
  }

  // Statements up to a tag named in `ends` (which stays current) or, when `ends` is empty, to the end of the source.
  Body parse_body(const EndNames& ends) {
    const Nesting nesting(*this);
    Body body;
    while (true) {
      if (current().type == TokenType::kEof) {
        if (!ends.empty()) fail_here("unexpected end of template; expected '" + std::string(ends.back()) + "'");
        return body;
      }
      if (current().type == TokenType::kData) {
        Statement* data = make_statement(StatementType::kData);
        data->value = Value(Kind::kString, std::make_shared<StringObject>(nullptr, Text(next().text, true), false));
        body.push_back(data);
      } else if (current().type == TokenType::kVariableBegin) {
        Statement* print = make_statement(StatementType::kPrint);
        next();
        print->expressions.push_back(parse_tuple({}));
        expect(TokenType::kVariableEnd, "'}}'");
        body.push_back(print);
      } else {
        expect(TokenType::kBlockBegin, "a tag");
        if (current().type != TokenType::kName) fail_here("tag name expected");
        if (std::find(ends.begin(), ends.end(), current().text) != ends.end()) return body;
        body.push_back(parse_statement(ends));
        expect(TokenType::kBlockEnd, "'%}'");
      }
    }
  }

  // `%}` body; the end tag's name is consumed and returned.
  Body parse_block(const EndNames& ends, std::string* end_name = nullptr) {
    skip_operator(":");
    expect(TokenType::kBlockEnd, "'%}'");
    Body body = parse_body(ends);
    const std::string name = next().text;
    if (end_name != nullptr) *end_name = name;
    return body;
  }

  const Statement* parse_statement(const EndNames& ends) {
    const std::string& tag = current().text;
    if (tag == "if") return parse_if();
    if (tag == "for") return parse_for();
    if (tag == "set") return parse_set();
    if (tag == "macro") return parse_macro();
    if (tag == "call") return parse_call_block();
    if (tag == "filter") return parse_filter_block();
    if (tag == "with") return parse_with();
    if (tag == "generation") return parse_generation();
    if (tag == "print") return parse_print();
    if (tag == "break" || tag == "continue") return parse_loop_control();
    for (const std::string_view known : {"block", "extends", "include", "import", "from", "autoescape"}) {
      if (tag == known) fail_here("the tag '" + tag + "' is not supported in chat templates");
    }
    const std::string wanted = ends.empty() ? "" : "; expected '" + std::string(ends.back()) + "'";
    fail_here("unknown tag '" + tag + "'" + wanted);
  }

  const Statement* parse_if() {
    const size_t from = num_named();
    Statement* node = make_statement(StatementType::kIf);
    std::string end = "elif";
    next();
    while (end == "elif") {
      Branch branch;
      branch.test = parse_tuple({.allow_conditional = false});
      branch.body = parse_block({"elif", "else", "endif"}, &end);
      node->branches.push_back(std::move(branch));
    }
    if (end == "else") node->branches.push_back({nullptr, parse_block({"endif"})});
    soften(from);
    return node;
  }

  const Statement* parse_for() {
    Statement* node = make_statement(StatementType::kFor);
    next();
    node->target = parse_target({.end_name = "in"});
    check_loop_target(node->target);
    if (!skip_name("in")) fail_here("expected 'in'");
    node->expression = parse_tuple({.allow_conditional = false, .end_name = "recursive"});
    const Frame frame(*this);
    if (skip_name("if")) node->test = parse_expression();
    node->is_recursive = skip_name("recursive");
    ++loop_depth_;
    std::string end;
    node->body = parse_block({"else", "endfor"}, &end);
    --loop_depth_;
    if (end == "else") node->else_body = parse_block({"endfor"});
    return node;
  }

  static void check_loop_target(const Expr* target) {
    std::vector<const Expr*> pending{target};
    while (!pending.empty()) {
      const Expr* part = pending.back();
      pending.pop_back();
      if (part->type == ExprType::kName && part->text == "loop") fail_at(part->line, "can't assign to special loop variable");
      pending.insert(pending.end(), part->items.begin(), part->items.end());
    }
  }

  const Statement* parse_loop_control() {
    // Inside a macro or captured block the loop outside is out of reach, as in jinja2's compiled code.
    if (loop_depth_ == 0) fail_here("'" + current().text + "' outside a loop");
    Statement* node = make_statement(current().text == "break" ? StatementType::kBreak : StatementType::kContinue);
    next();
    return node;
  }

  const Statement* parse_set() {
    Statement* node = make_statement(StatementType::kSet);
    next();
    node->target = parse_target({.allow_namespace = true});
    if (skip_operator("=")) {
      node->expression = parse_tuple({});
      return node;
    }
    node->type = StatementType::kSetBlock;
    const Frame frame(*this);
    node->expression = parse_filter_chain(nullptr, false);
    node->body = parse_block({"endset"});
    return node;
  }

  void parse_signature(MacroSyntax& macro) {
    expect_operator("(");
    while (!at_operator(")")) {
      if (!macro.parameters.empty()) expect_operator(",");
      if (at_operator(")")) break;
      const std::string name = expect_name();
      macro.parameters.emplace_back(program().symbol(name), name);
      if (skip_operator("=")) {
        macro.defaults.push_back(parse_expression());
      } else if (!macro.defaults.empty()) {
        fail_here("non-default argument follows default argument");
      }
    }
    expect_operator(")");
  }

  void parse_macro_body(MacroSyntax& macro, std::string_view end) {
    const size_t first = program().expressions.size();
    const int loops = std::exchange(loop_depth_, 0);
    macro.body = parse_block({end});
    loop_depth_ = loops;
    for (size_t i = first; i < program().expressions.size(); ++i) {
      const Expr& node = program().expressions[i];
      if (node.type != ExprType::kName) continue;
      macro.uses_caller |= node.text == "caller";
      macro.uses_varargs |= node.text == "varargs";
      macro.uses_kwargs |= node.text == "kwargs";
    }
    for (const auto& [symbol, name] : macro.parameters) {
      if (name == "caller") macro.uses_caller = false;
      if (name == "varargs") macro.uses_varargs = false;
      if (name == "kwargs") macro.uses_kwargs = false;
    }
  }

  const Statement* parse_macro() {
    Statement* node = make_statement(StatementType::kMacro);
    next();
    node->macro.name = expect_name();
    node->symbol = program().symbol(node->macro.name);
    const Frame frame(*this);
    parse_signature(node->macro);
    parse_macro_body(node->macro, "endmacro");
    return node;
  }

  const Statement* parse_call_block() {
    Statement* node = make_statement(StatementType::kCallBlock);
    next();
    node->macro.name = "caller";
    if (at_operator("(")) parse_signature(node->macro);
    node->expression = parse_expression();
    if (node->expression->type != ExprType::kCall) fail_here("expected a call");
    const Frame frame(*this);
    parse_macro_body(node->macro, "endcall");
    return node;
  }

  const Statement* parse_filter_block() {
    Statement* node = make_statement(StatementType::kFilterBlock);
    next();
    const Frame frame(*this);
    node->expression = parse_filter_chain(nullptr, true);
    node->body = parse_block({"endfilter"});
    return node;
  }

  const Statement* parse_with() {
    Statement* node = make_statement(StatementType::kWith);
    next();
    while (current().type != TokenType::kBlockEnd) {
      if (!node->targets.empty()) expect_operator(",");
      node->targets.push_back(parse_target({}));
      expect_operator("=");
      node->expressions.push_back(parse_expression());
    }
    const Frame frame(*this);
    node->body = parse_block({"endwith"});
    return node;
  }

  const Statement* parse_generation() {
    Statement* node = make_statement(StatementType::kGeneration);
    next();
    const Frame frame(*this);
    const int loops = std::exchange(loop_depth_, 0);
    node->body = parse_block({"endgeneration"});
    loop_depth_ = loops;
    return node;
  }

  const Statement* parse_print() {
    Statement* node = make_statement(StatementType::kPrint);
    next();
    while (current().type != TokenType::kBlockEnd) {
      if (!node->expressions.empty()) expect_operator(",");
      node->expressions.push_back(parse_expression());
    }
    return node;
  }

  int loop_depth_ = 0;
};

}  // namespace

std::shared_ptr<const Program> parse_program(std::string_view source, uint32_t max_depth) {
  auto program = std::make_shared<Program>();
  Parser(tokenize(source), *program, max_depth).run();
  return program;
}

}  // namespace pagoda::jinja
