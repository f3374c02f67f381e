#include "chat_template/methods.h"

#include <algorithm>
#include <array>

#include "chat_template/arguments.h"
#include "chat_template/interpreter.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

constexpr std::array<std::string_view, 5> kUnsafeDict = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::array<std::string_view, 8> kUnsafeList = {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};

Value make_view(Interpreter& in, const Value& self, DictPart part) {
  return Value(Kind::kDictView, std::make_shared<DictViewObject>(&in.budget(), self, part));
}
Value dict_keys(Interpreter& in, const Value& self, CallArguments& a) {
  const BoundArguments args("keys", a, {}, 0);
  return make_view(in, self, DictPart::kKeys);
}
Value dict_values(Interpreter& in, const Value& self, CallArguments& a) {
  const BoundArguments args("values", a, {}, 0);
  return make_view(in, self, DictPart::kValues);
}
Value dict_items(Interpreter& in, const Value& self, CallArguments& a) {
  const BoundArguments args("items", a, {}, 0);
  return make_view(in, self, DictPart::kItems);
}
Value dict_get(Interpreter&, const Value& self, CallArguments& a) {
  if (!a.keyword.empty()) fail("get() takes no keyword arguments");
  const BoundArguments args("get", a, {"key", "default"}, 1);
  const Value* found = self.dict().find(args[0]);
  if (found != nullptr) return *found;
  return args.has(1) ? args[1] : Value::none();
}
Value same_value(Interpreter&, const Value& self, CallArguments& a) {
  const BoundArguments args("copy", a, {}, 0);
  return self;  // values do not change, so a copy is the value
}

Value sequence_count(Interpreter& in, const Value& self, CallArguments& a) {
  const BoundArguments args("count", a, {"value"}, 1);
  int64_t count = 0;
  for (const Value& item : iterate(in.heap(), self)) count += equals(item, args[0]) ? 1 : 0;
  return Value::integer(count);
}
Value sequence_index(Interpreter& in, const Value& self, CallArguments& a) {
  const BoundArguments args("index", a, {"value", "start", "stop"}, 1);
  const Values items = iterate(in.heap(), self);
  const auto size = static_cast<int64_t>(items.size());
  const auto clamp = [size](int64_t i) { return std::clamp<int64_t>(i < 0 ? (i < -size ? 0 : i + size) : i, 0, size); };
  for (int64_t i = clamp(args.integer_or(1, 0)); i < clamp(args.integer_or(2, size)); ++i) {
    if (equals(items[static_cast<size_t>(i)], args[0])) return Value::integer(i);
  }
  fail(to_repr(in.heap(), args[0]).bytes().substr(0, 100) + " is not in list");
}

Value cycler_next(Interpreter&, const Value& self, CallArguments& a) {
  const BoundArguments args("next", a, {}, 0);
  auto& cycler = self.object<CyclerObject>();
  const Value out = cycler.items.items()[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.items().size();
  return out;
}
Value cycler_reset(Interpreter&, const Value& self, CallArguments& a) {
  const BoundArguments args("reset", a, {}, 0);
  self.object<CyclerObject>().position = 0;
  return Value::none();
}

Value loop_cycle(Interpreter&, const Value& self, CallArguments& a) {
  if (a.positional.empty() || !a.keyword.empty()) fail("no items for cycling given");
  const int64_t index = std::max<int64_t>(0, self.object<LoopObject>().index0);
  return a.positional[static_cast<size_t>(index) % a.positional.size()];
}
Value loop_changed(Interpreter& in, const Value& self, CallArguments& a) {
  auto& loop = self.object<LoopObject>();
  // A loop that is over would keep the values, and with them perhaps itself, alive.
  if (loop.is_over || !a.keyword.empty()) fail("loop.changed() can only be asked inside its loop");
  const Value values = in.heap().tuple(std::move(a.positional));
  if (loop.has_changed_value && equals(loop.changed_value, values)) return Value::boolean(false);
  loop.has_changed_value = true;
  loop.changed_value = values;
  return Value::boolean(true);
}

constexpr MethodEntry kDictMethods[] = {{"keys", dict_keys}, {"values", dict_values}, {"items", dict_items},
                                        {"get", dict_get},   {"copy", same_value}};
constexpr MethodEntry kListMethods[] = {{"count", sequence_count}, {"index", sequence_index}, {"copy", same_value}};
constexpr MethodEntry kTupleMethods[] = {{"count", sequence_count}, {"index", sequence_index}};
constexpr MethodEntry kCyclerMethods[] = {{"next", cycler_next}, {"reset", cycler_reset}};
constexpr MethodEntry kLoopMethods[] = {{"cycle", loop_cycle}, {"changed", loop_changed}};

template <size_t N>
const MethodEntry* find_entry(const MethodEntry (&table)[N], std::string_view name) {
  for (const MethodEntry& entry : table) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

const MethodEntry* find_entry_of(const Value& value, std::string_view name) {
  switch (value.kind()) {
    case Kind::kDict: return find_entry(kDictMethods, name);
    case Kind::kList: return find_entry(kListMethods, name);
    case Kind::kTuple:
    case Kind::kRange: return find_entry(kTupleMethods, name);
    case Kind::kCycler: return find_entry(kCyclerMethods, name);
    case Kind::kLoop: return find_entry(kLoopMethods, name);
    case Kind::kString: {
      const MethodEntry* entry = find_string_method(name);
      if (entry == nullptr) entry = find_string_split_method(name);
      return entry != nullptr ? entry : find_string_class_method(name);
    }
    default: return nullptr;
  }
}

// Attributes that are values, not functions.
bool find_field(Interpreter& in, const Value& value, std::string_view name, Value& out) {
  if (value.is(Kind::kCycler)) {
    const auto& cycler = value.object<CyclerObject>();
    if (name == "current") out = cycler.items.items()[cycler.position];
    else if (name == "items") out = cycler.items;
    else if (name == "pos") out = Value::integer(static_cast<int64_t>(cycler.position));
    else return false;
    return true;
  }
  if (value.is(Kind::kJoiner)) {
    const auto& joiner = value.object<JoinerObject>();
    if (name == "sep") out = joiner.separator;
    else if (name == "used") out = Value::boolean(joiner.used);
    else return false;
    return true;
  }
  if (value.is(Kind::kMacro) && name == "name") {
    out = in.heap().string(value.object<MacroObject>().name());
    return true;
  }
  if (value.is(Kind::kRange) && (name == "start" || name == "stop" || name == "step")) {
    const auto& range = value.object<RangeObject>();
    out = Value::integer(name == "start" ? range.start : name == "stop" ? range.stop : range.step);
    return true;
  }
  return false;
}

}  // namespace

bool find_method(Interpreter& in, const Value& value, const std::string& name, Value& out) {
  const bool is_unsafe = (value.is(Kind::kDict) && std::find(kUnsafeDict.begin(), kUnsafeDict.end(), name) != kUnsafeDict.end()) ||
                         (value.is(Kind::kList) && std::find(kUnsafeList.begin(), kUnsafeList.end(), name) != kUnsafeList.end());
  if (is_unsafe) {
    out = in.heap().undefined("access to attribute '" + name + "' of '" + std::string(type_name(value)) + "' object is unsafe");
    return true;
  }
  if (find_field(in, value, name, out)) return true;
  const MethodEntry* entry = find_entry_of(value, name);
  if (entry == nullptr) return false;
  out = in.heap().function(entry->name, entry->function, value);
  return true;
}

}  // namespace pagoda::jinja
