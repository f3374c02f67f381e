#pragma once
// The values a template computes with, with Python's semantics where a template can see them.
//
// A Value is small and immutable except for namespaces, iterators, loops, cyclers and joiners. Containers hold shared
// pointers to their items; only a namespace can close a cycle, and the interpreter empties all of them when it ends.
// Every object charges the render's Budget for its bytes and counts its nesting, so that no recursion over values is
// deeper than kMaxValueDepth.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chat_template/budget.h"
#include "chat_template/text.h"

namespace pagoda::jinja {

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kBigInt,  ///< an unsigned JSON number above int64: can be printed and compared, not computed with
  kDouble,
  kString,
  kList,
  kTuple,
  kDict,
  kDictView,  ///< what dict.keys(), values() and items() give
  kRange,
  kIterator,  ///< what lazy filters give: can be walked once, has no length
  kNamespace,
  kMacro,
  kFunction,  ///< a global function or a method bound to its value
  kLoop,
  kCycler,
  kJoiner,
};

/// Containers nest at most this deep: printing and comparing them recurses once a level.
inline constexpr uint32_t kMaxValueDepth = 100;

class Object {
 public:
  Object(Budget* budget, size_t bytes);
  virtual ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  Budget* budget() const { return budget_; }

  uint32_t depth = 1;

 protected:
  void charge_more(size_t bytes);

 private:
  Budget* budget_;  ///< null for constants of the parsed template, which outlive renders
  size_t bytes_;
};

class StringObject;
class SequenceObject;
class DictObject;

class Value {
 public:
  Value() = default;  ///< undefined without a name
  static Value none();
  static Value boolean(bool b);
  static Value integer(int64_t i);
  static Value big_integer(uint64_t u);
  static Value number(double d);
  Value(Kind kind, std::shared_ptr<Object> object) : kind_(kind), object_(std::move(object)) {}

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_sequence() const { return kind_ == Kind::kList || kind_ == Kind::kTuple; }
  /// bool or int64, as Python's bool is an int.
  bool is_integral() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }
  bool is_numeric() const { return is_integral() || kind_ == Kind::kDouble || kind_ == Kind::kBigInt; }

  bool as_bool() const { return scalar_.b; }
  int64_t as_int() const { return kind_ == Kind::kBool ? int64_t{scalar_.b} : scalar_.i; }
  uint64_t as_big() const { return scalar_.u; }
  double as_double() const;  ///< of any numeric value
  const Text& text() const;  ///< of a string
  const std::string& str() const { return text().bytes(); }
  bool is_markup() const;
  const std::vector<Value>& items() const;  ///< of a list or tuple
  const DictObject& dict() const;
  template <typename T>
  T& object() const { return static_cast<T&>(*object_); }
  const Object* identity() const { return object_.get(); }
  const std::shared_ptr<Object>& shared() const { return object_; }
  uint32_t depth() const { return object_ ? object_->depth : 0; }

 private:
  Kind kind_ = Kind::kUndefined;
  union Scalar {
    bool b;
    int64_t i;
    uint64_t u;
    double d;
  } scalar_ = {.u = 0};
  std::shared_ptr<Object> object_;
};

using Values = std::vector<Value>;
using Keywords = std::vector<std::pair<std::string, Value>>;

class UndefinedObject : public Object {
 public:
  UndefinedObject(Budget* budget, std::string m) : Object(budget, sizeof(*this) + m.size()), message(std::move(m)) {}
  std::string message;  ///< what to say when it is used
};

class StringObject : public Object {
 public:
  StringObject(Budget* budget, Text t, bool markup)
      : Object(budget, sizeof(*this) + t.footprint()), text(std::move(t)), is_markup(markup), ascii(is_ascii(text.view())) {}
  Text text;
  bool is_markup;  ///< jinja2's Markup: `+` escapes the other side
  bool ascii;      ///< code point positions are byte positions
};

class SequenceObject : public Object {
 public:
  SequenceObject(Budget* budget, Values v);
  Values items;
};

/// Insertion order; lookups above a few entries go through a hash index.
class DictObject : public Object {
 public:
  explicit DictObject(Budget* budget) : Object(budget, sizeof(*this)) {}
  void set(Value key, Value value);
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  const std::vector<std::pair<Value, Value>>& entries() const { return entries_; }

 private:
  size_t locate(const Value& key, uint64_t hash) const;
  std::vector<std::pair<Value, Value>> entries_;
  std::unordered_multimap<uint64_t, uint32_t> index_;
};

enum class DictPart : uint8_t { kKeys, kValues, kItems };

class DictViewObject : public Object {
 public:
  DictViewObject(Budget* budget, Value d, DictPart p) : Object(budget, sizeof(*this)), dict(std::move(d)), part(p) {
    depth = dict.depth() + 1;
  }
  Value dict;
  DictPart part;
};

class RangeObject : public Object {
 public:
  RangeObject(Budget* budget, int64_t first, int64_t limit, int64_t stride);
  int64_t start, stop, step;
  int64_t length;
  int64_t at(int64_t index) const { return start + index * step; }
};

class IteratorObject : public Object {
 public:
  IteratorObject(Budget* budget, Values v);
  Values items;
  size_t position = 0;
};

class NamespaceObject : public Object {
 public:
  explicit NamespaceObject(Budget* budget) : Object(budget, sizeof(*this)) {}
  void set(const std::string& name, Value value);
  const Value* find(std::string_view name) const;
  Keywords attributes;
};

class CyclerObject : public Object {
 public:
  CyclerObject(Budget* budget, Value list) : Object(budget, sizeof(*this)), items(std::move(list)) { depth = items.depth() + 1; }
  Value items;
  size_t position = 0;
};

class JoinerObject : public Object {
 public:
  JoinerObject(Budget* budget, Value s) : Object(budget, sizeof(*this)), separator(std::move(s)) { depth = separator.depth() + 1; }
  Value separator;
  bool used = false;
};

class Interpreter;
struct CallArguments {
  Values positional;
  Keywords keyword;
};
using NativeFunction = Value (*)(Interpreter& interpreter, const Value& self, CallArguments& arguments);

class FunctionObject : public Object {
 public:
  FunctionObject(Budget* budget, const char* n, NativeFunction f, Value s)
      : Object(budget, sizeof(*this)), name(n), function(f), self(std::move(s)) {
    depth = self.depth() + 1;
  }
  const char* name;
  NativeFunction function;
  Value self;  ///< what a method is bound to
};

/// Makes objects that are charged to one Budget.
class Heap {
 public:
  explicit Heap(Budget& budget) : budget_(budget) {}
  Budget& budget() const { return budget_; }
  Value string(Text text, bool is_markup = false) const;
  Value string(std::string bytes, bool is_trusted = true) const { return string(Text(std::move(bytes), is_trusted)); }
  Value list(Values items) const;
  Value tuple(Values items) const;
  Value iterator(Values items) const;
  Value undefined(std::string message) const;
  std::shared_ptr<DictObject> dict() const { return std::make_shared<DictObject>(&budget_); }
  Value function(const char* name, NativeFunction function, Value self = {}) const;

 private:
  Budget& budget_;
};

/// Python's type name, for messages.
std::string_view type_name(const Value& value);
/// Fails with the undefined value's own message when `value` is undefined.
void require_defined(const Value& value);

}  // namespace pagoda::jinja
