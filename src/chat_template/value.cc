#include "chat_template/value.h"

#include <algorithm>

#include "base/check.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

// A shared_ptr's control block and the allocator's own overhead, for every object.
constexpr size_t kObjectOverhead = 32;
// What one more dict entry costs in the hash index: node, bucket and overhead.
constexpr size_t kIndexEntryBytes = 48;
constexpr size_t kIndexFrom = 8;

uint32_t depth_over(const Values& items) {
  uint32_t deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, item.depth());
  return deepest + 1;
}

void check_depth(uint32_t depth) {
  if (depth > kMaxValueDepth) fail_limit("values nest more than " + std::to_string(kMaxValueDepth) + " deep");
}

}  // namespace

Object::Object(Budget* budget, size_t bytes) : budget_(budget), bytes_(bytes + kObjectOverhead) {
  if (budget_ != nullptr) budget_->take_memory(bytes_);
}
Object::~Object() {
  if (budget_ != nullptr) budget_->give_memory(bytes_);
}
void Object::charge_more(size_t bytes) {
  if (budget_ == nullptr) return;
  budget_->take_memory(bytes);
  bytes_ += bytes;
}

Value Value::none() { return Value(Kind::kNone, nullptr); }
Value Value::boolean(bool b) {
  Value v(Kind::kBool, nullptr);
  v.scalar_.b = b;
  return v;
}
Value Value::integer(int64_t i) {
  Value v(Kind::kInt, nullptr);
  v.scalar_.i = i;
  return v;
}
Value Value::big_integer(uint64_t u) {
  Value v(Kind::kBigInt, nullptr);
  v.scalar_.u = u;
  return v;
}
Value Value::number(double d) {
  Value v(Kind::kDouble, nullptr);
  v.scalar_.d = d;
  return v;
}

double Value::as_double() const {
  if (kind_ == Kind::kDouble) return scalar_.d;
  if (kind_ == Kind::kBigInt) return static_cast<double>(scalar_.u);
  return static_cast<double>(as_int());
}
const Text& Value::text() const {
  PAGODA_CHECK(kind_ == Kind::kString);
  return object<StringObject>().text;
}
bool Value::is_markup() const { return kind_ == Kind::kString && object<StringObject>().is_markup; }
const Values& Value::items() const {
  PAGODA_CHECK(is_sequence());
  return object<SequenceObject>().items;
}
const DictObject& Value::dict() const {
  PAGODA_CHECK(kind_ == Kind::kDict);
  return object<DictObject>();
}

SequenceObject::SequenceObject(Budget* budget, Values v)
    : Object(budget, sizeof(*this) + v.capacity() * sizeof(Value)), items(std::move(v)) {
  depth = depth_over(items);
}
IteratorObject::IteratorObject(Budget* budget, Values v)
    : Object(budget, sizeof(*this) + v.capacity() * sizeof(Value)), items(std::move(v)) {
  depth = depth_over(items);
}

RangeObject::RangeObject(Budget* budget, int64_t first, int64_t limit, int64_t stride)
    : Object(budget, sizeof(*this)), start(first), stop(limit), step(stride), length(0) {
  const auto low = static_cast<__int128>(step > 0 ? start : stop);
  const auto high = static_cast<__int128>(step > 0 ? stop : start);
  const __int128 stride128 = step > 0 ? static_cast<__int128>(step) : -static_cast<__int128>(step);
  const __int128 count = high > low ? (high - low - 1) / stride128 + 1 : 0;
  // jinja2's sandbox refuses longer ranges; without a cap `length` could also pass int64.
  if (count > 100'000) fail_limit("range() is too big: a template's range has at most 100000 items");
  length = static_cast<int64_t>(count);
}

size_t DictObject::locate(const Value& key, uint64_t hash) const {
  if (index_.empty()) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (equals(entries_[i].first, key)) return i;
    }
    return entries_.size();
  }
  const auto [first, last] = index_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (budget() != nullptr) budget()->step();
    if (equals(entries_[it->second].first, key)) return it->second;
  }
  return entries_.size();
}

void DictObject::set(Value key, Value value) {
  const uint64_t hash = hash_value(key);
  const size_t at = locate(key, hash);
  depth = std::max({depth, key.depth() + 1, value.depth() + 1});
  check_depth(depth);
  if (at < entries_.size()) {
    entries_[at].second = std::move(value);
    return;
  }
  // Twice an entry: the vector doubles as it grows.
  charge_more(2 * sizeof(std::pair<Value, Value>) + (entries_.size() >= kIndexFrom ? kIndexEntryBytes : 0));
  entries_.emplace_back(std::move(key), std::move(value));
  if (entries_.size() <= kIndexFrom) return;
  if (index_.empty()) {
    for (size_t i = 0; i + 1 < entries_.size(); ++i) {
      index_.emplace(hash_value(entries_[i].first), static_cast<uint32_t>(i));
    }
  }
  index_.emplace(hash, static_cast<uint32_t>(entries_.size() - 1));
}

const Value* DictObject::find(const Value& key) const {
  const size_t at = locate(key, hash_value(key));
  return at < entries_.size() ? &entries_[at].second : nullptr;
}

const Value* DictObject::find(std::string_view key) const {
  if (index_.empty()) {
    for (const auto& [name, value] : entries_) {
      if (name.is_string() && name.str() == key) return &value;
    }
    return nullptr;
  }
  const auto [first, last] = index_.equal_range(hash_text(key));
  for (auto it = first; it != last; ++it) {
    if (budget() != nullptr) budget()->step();
    const auto& [name, value] = entries_[it->second];
    if (name.is_string() && name.str() == key) return &value;
  }
  return nullptr;
}

void NamespaceObject::set(const std::string& name, Value value) {
  budget()->steps(attributes.size() / 16);
  for (auto& [known, old] : attributes) {
    if (known == name) {
      old = std::move(value);
      return;
    }
  }
  charge_more(2 * (sizeof(Keywords::value_type) + name.size()));
  attributes.emplace_back(name, std::move(value));
}
const Value* NamespaceObject::find(std::string_view name) const {
  budget()->steps(attributes.size() / 16);
  for (const auto& [known, value] : attributes) {
    if (known == name) return &value;
  }
  return nullptr;
}

Value Heap::string(Text text, bool is_markup) const {
  budget_.check_string(text.size());
  return Value(Kind::kString, std::make_shared<StringObject>(&budget_, std::move(text), is_markup));
}
Value Heap::list(Values items) const {
  auto object = std::make_shared<SequenceObject>(&budget_, std::move(items));
  check_depth(object->depth);
  return Value(Kind::kList, std::move(object));
}
Value Heap::tuple(Values items) const {
  auto object = std::make_shared<SequenceObject>(&budget_, std::move(items));
  check_depth(object->depth);
  return Value(Kind::kTuple, std::move(object));
}
Value Heap::iterator(Values items) const {
  auto object = std::make_shared<IteratorObject>(&budget_, std::move(items));
  check_depth(object->depth);
  return Value(Kind::kIterator, std::move(object));
}
Value Heap::undefined(std::string message) const {
  return Value(Kind::kUndefined, std::make_shared<UndefinedObject>(&budget_, std::move(message)));
}
Value Heap::function(const char* name, NativeFunction function, Value self) const {
  auto object = std::make_shared<FunctionObject>(&budget_, name, function, std::move(self));
  check_depth(object->depth);
  return Value(Kind::kFunction, std::move(object));
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined: return "Undefined";
    case Kind::kNone: return "NoneType";
    case Kind::kBool: return "bool";
    case Kind::kInt:
    case Kind::kBigInt: return "int";
    case Kind::kDouble: return "float";
    case Kind::kString: return value.is_markup() ? "Markup" : "str";
    case Kind::kList: return "list";
    case Kind::kTuple: return "tuple";
    case Kind::kDict: return "dict";
    case Kind::kDictView: return "dict view";
    case Kind::kRange: return "range";
    case Kind::kIterator: return "generator";
    case Kind::kNamespace: return "Namespace";
    case Kind::kMacro: return "Macro";
    case Kind::kFunction: return "function";
    case Kind::kLoop: return "LoopContext";
    case Kind::kCycler: return "Cycler";
    case Kind::kJoiner: return "Joiner";
  }
  return "object";
}

void require_defined(const Value& value) {
  if (!value.is_undefined()) return;
  if (value.identity() == nullptr) fail("an undefined value was used");
  fail(value.object<UndefinedObject>().message);
}

}  // namespace pagoda::jinja
