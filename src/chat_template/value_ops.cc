#include "chat_template/value_ops.h"

#include <algorithm>
#include <cmath>

namespace pagoda::jinja {
namespace {

void charge(const Value& value, uint64_t bytes) {
  if (value.identity() != nullptr && value.identity()->budget() != nullptr) value.identity()->budget()->work(bytes);
}

[[noreturn]] void fail_order(const Value& a, const Value& b, std::string_view op) {
  require_defined(a);
  require_defined(b);
  fail("'" + std::string(op) + "' not supported between instances of '" + std::string(type_name(a)) + "' and '" +
       std::string(type_name(b)) + "'");
}

// -1, 0, 1, or 2 when a NaN makes the numbers unordered. int64 against double goes through long double, which holds
// every int64 exactly on x86-64.
int compare_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int() ? 1 : 0;
  const auto exact = [](const Value& v) {
    if (v.is(Kind::kDouble)) return static_cast<long double>(v.as_double());
    return v.is(Kind::kBigInt) ? static_cast<long double>(v.as_big()) : static_cast<long double>(v.as_int());
  };
  const long double x = exact(a);
  const long double y = exact(b);
  if (std::isnan(x) || std::isnan(y)) return 2;
  return x < y ? -1 : x > y ? 1 : 0;
}

bool equal_items(const Values& a, const Values& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equals(a[i], b[i])) return false;
  }
  return true;
}

bool equal_dicts(const DictObject& a, const DictObject& b) {
  if (a.entries().size() != b.entries().size()) return false;
  for (const auto& [key, value] : a.entries()) {
    const Value* other = b.find(key);
    if (other == nullptr || !equals(value, *other)) return false;
  }
  return true;
}

}  // namespace

bool is_true(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone: return false;
    case Kind::kBool: return value.as_bool();
    case Kind::kInt: return value.as_int() != 0;
    case Kind::kDouble: return value.as_double() != 0;
    case Kind::kString: return !value.text().empty();
    case Kind::kList:
    case Kind::kTuple: return !value.items().empty();
    case Kind::kDict: return !value.dict().entries().empty();
    case Kind::kDictView:
    case Kind::kRange:
    case Kind::kLoop: return length_of(value) != 0;
    default: return true;
  }
}

bool equals(const Value& a, const Value& b) {
  if (a.identity() != nullptr && a.identity()->budget() != nullptr) a.identity()->budget()->step();
  if (a.is_numeric() && b.is_numeric()) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone: return true;
    case Kind::kString:
      if (a.str().size() != b.str().size()) return false;
      charge(a, a.str().size());
      return a.str() == b.str();
    case Kind::kList:
    case Kind::kTuple: return a.identity() == b.identity() || equal_items(a.items(), b.items());
    case Kind::kDict: return a.identity() == b.identity() || equal_dicts(a.dict(), b.dict());
    case Kind::kRange: {
      const auto& x = a.object<RangeObject>();
      const auto& y = b.object<RangeObject>();
      if (x.length != y.length) return false;
      return x.length == 0 || (x.start == y.start && (x.length == 1 || x.step == y.step));
    }
    case Kind::kFunction: {
      const auto& x = a.object<FunctionObject>();
      const auto& y = b.object<FunctionObject>();
      return x.function == y.function && x.self.identity() == y.self.identity();
    }
    default: return a.identity() == b.identity();
  }
}

int compare(const Value& a, const Value& b, std::string_view op) {
  if (a.is_numeric() && b.is_numeric()) return compare_numbers(a, b);
  if (a.is_string() && b.is_string()) {
    charge(a, std::min(a.str().size(), b.str().size()));
    return a.str().compare(b.str());  // UTF-8 byte order is code point order
  }
  if (a.kind() != b.kind() || !a.is_sequence()) fail_order(a, b, op);
  const Values& x = a.items();
  const Values& y = b.items();
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (!equals(x[i], y[i])) return compare(x[i], y[i], op);
  }
  return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
}

bool ordered(const Value& a, const Value& b, std::string_view op) {
  const int order = compare(a, b, op);
  if (order == 2 && a.is_numeric()) return false;
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  if (op == ">") return order > 0;
  return order >= 0;
}

bool contains(const Heap& heap, const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::kUndefined: return false;
    case Kind::kString:
      require_defined(item);
      if (!item.is_string()) {
        fail("'in <string>' requires string as left operand, not " + std::string(type_name(item)));
      }
      heap.budget().work(container.str().size());
      return container.str().find(item.str()) != std::string::npos;
    case Kind::kDict: return container.dict().find(item) != nullptr;
    case Kind::kDictView: {
      const auto& view = container.object<DictViewObject>();
      if (view.part == DictPart::kKeys) return view.dict.dict().find(item) != nullptr;
      break;
    }
    case Kind::kList:
    case Kind::kTuple: {
      const Values& items = container.items();
      heap.budget().steps(items.size() / 8);
      return std::any_of(items.begin(), items.end(), [&](const Value& v) { return equals(v, item); });
    }
    case Kind::kRange:
    case Kind::kIterator: break;
    default: fail("argument of type '" + std::string(type_name(container)) + "' is not iterable");
  }
  const Values items = iterate(heap, container);
  return std::any_of(items.begin(), items.end(), [&](const Value& v) { return equals(v, item); });
}

uint64_t hash_text(std::string_view text) { return std::hash<std::string_view>{}(text); }

uint64_t hash_value(const Value& value) {
  switch (value.kind()) {
    case Kind::kString: return hash_text(value.str());
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kBigInt:
    case Kind::kDouble: return std::hash<double>{}(value.as_double() + 0.0);
    case Kind::kNone: return 0x6e6f6e65;
    case Kind::kUndefined: return 0x756e6465;
    case Kind::kTuple: {
      uint64_t hash = 0x74757065;
      for (const Value& item : value.items()) hash = hash * 1000003 + hash_value(item);
      return hash;
    }
    case Kind::kList:
    case Kind::kDict:
    case Kind::kDictView: fail("unhashable type: '" + std::string(type_name(value)) + "'");
    default: return std::hash<const void*>{}(value.identity());
  }
}

int64_t length_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined: return 0;
    case Kind::kString: {
      const auto& object = value.object<StringObject>();
      if (object.ascii) return static_cast<int64_t>(object.text.size());
      charge(value, object.text.size());
      return static_cast<int64_t>(count_code_points(object.text.view()));
    }
    case Kind::kList:
    case Kind::kTuple: return static_cast<int64_t>(value.items().size());
    case Kind::kDict: return static_cast<int64_t>(value.dict().entries().size());
    case Kind::kDictView: return length_of(value.object<DictViewObject>().dict);
    case Kind::kRange: return value.object<RangeObject>().length;
    default: fail("object of type '" + std::string(type_name(value)) + "' has no len()");
  }
}

bool is_iterable(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kDictView:
    case Kind::kRange:
    case Kind::kIterator:
    case Kind::kLoop: return true;
    default: return false;
  }
}

}  // namespace pagoda::jinja
