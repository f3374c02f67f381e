// Filters over sequences and numbers.

#include <algorithm>
#include <cmath>

#include "chat_template/arguments.h"
#include "chat_template/filters.h"
#include "chat_template/interpreter.h"
#include "chat_template/merge_sort.h"
#include "chat_template/number_ops.h"
#include "chat_template/string_ops.h"
#include "chat_template/unicode.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

Value fold_case(Interpreter& in, const Value& v, bool is_case_sensitive) {
  if (is_case_sensitive || !v.is_string()) return v;
  in.budget().work(v.str().size() * 8);
  return in.heap().string(unicode::lower(v.str()), v.text().is_trusted());
}

Value length(Interpreter&, const Value& v, CallArguments& a) {
  const BoundArguments args("length", a, {}, 0);
  return Value::integer(length_of(v));
}
Value list(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("list", a, {}, 0);
  return in.heap().list(iterate(in.heap(), v));
}
Value first(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("first", a, {}, 0);
  if (v.is(Kind::kIterator)) {
    auto& iterator = v.object<IteratorObject>();
    if (iterator.position < iterator.items.size()) return iterator.items[iterator.position++];
    return in.heap().undefined("No first item, sequence was empty.");
  }
  const Values items = iterate(in.heap(), v);
  return items.empty() ? in.heap().undefined("No first item, sequence was empty.") : items.front();
}
Value last(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("last", a, {}, 0);
  require_defined(v);
  if (v.is(Kind::kIterator)) fail("'generator' object is not reversible");
  const Values items = iterate(in.heap(), v);
  return items.empty() ? in.heap().undefined("No last item, sequence was empty.") : items.back();
}
Value reverse(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("reverse", a, {}, 0);
  if (v.is_string()) return slice_value(in.heap(), v, Value::none(), Value::none(), Value::integer(-1));
  Values items = iterate(in.heap(), v);
  std::reverse(items.begin(), items.end());
  return in.heap().iterator(std::move(items));
}
Value items(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("items", a, {}, 0);
  if (v.is_undefined()) return in.heap().iterator({});
  if (!v.is(Kind::kDict)) fail("Can only get item pairs from a mapping.");
  const Value view(Kind::kDictView, std::make_shared<DictViewObject>(&in.budget(), v, DictPart::kItems));
  return in.heap().iterator(iterate(in.heap(), view));
}
Value join(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("join", a, {"d", "attribute"}, 0);
  const Text separator = args.has(0) ? to_text(in.heap(), args[0]) : Text();
  TextBuilder out(in.heap());
  bool is_first = true;
  for (const Value& item : iterate(in.heap(), v)) {
    if (!std::exchange(is_first, false)) out.append(separator);
    out.append(to_text(in.heap(), args.is_absent(1) ? item : attribute_path(in, item, args[1])));
  }
  return in.heap().string(out.take());
}

// Sorts by keys computed once. n log n comparisons are charged up front; each comparison charges its own work.
template <typename Key>
Values sorted_by(Interpreter& in, const Values& items, bool is_reverse, Key key) {
  in.budget().steps(items.size() * 4);
  in.budget().check_memory(items.size() * 5 * sizeof(Value));
  std::vector<std::pair<Value, Value>> keyed;
  keyed.reserve(items.size());
  for (const Value& item : items) keyed.emplace_back(key(item), item);
  const auto less = [&in](const auto& x, const auto& y) {
    in.budget().step();
    return ordered(x.first, y.first, "<");
  };
  // Python keeps equal items in order when reversed too.
  if (is_reverse) std::reverse(keyed.begin(), keyed.end());
  merge_sort(keyed, less);
  if (is_reverse) std::reverse(keyed.begin(), keyed.end());
  Values out;
  out.reserve(keyed.size());
  for (auto& [k, item] : keyed) out.push_back(std::move(item));
  return out;
}

Value sort(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("sort", a, {"reverse", "case_sensitive", "attribute"}, 0);
  const bool is_case_sensitive = args.bool_or(1, false);
  std::vector<Value> paths;
  if (args.is_absent(2)) {
    paths.push_back(Value::none());
  } else if (args[2].is_string()) {
    const std::string& all = args[2].str();
    for (size_t from = 0; from <= all.size();) {
      const size_t comma = std::min(all.find(',', from), all.size());
      paths.push_back(in.heap().string(all.substr(from, comma - from)));
      from = comma + 1;
    }
  } else {
    paths.push_back(args[2]);
  }
  return in.heap().list(sorted_by(in, iterate(in.heap(), v), args.bool_or(0, false), [&](const Value& item) {
    Values keys;
    for (const Value& path : paths) keys.push_back(fold_case(in, path.is_none() ? item : attribute_path(in, item, path), is_case_sensitive));
    return in.heap().list(std::move(keys));
  }));
}

Value dictsort(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("dictsort", a, {"case_sensitive", "by", "reverse"}, 0);
  require_defined(v);
  if (!v.is(Kind::kDict)) fail("dictsort: a mapping is required, not " + std::string(type_name(v)));
  const std::string by = args.has(1) ? args.text(1).bytes() : "key";
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  const bool is_case_sensitive = args.bool_or(0, false);
  const Value view(Kind::kDictView, std::make_shared<DictViewObject>(&in.budget(), v, DictPart::kItems));
  return in.heap().list(sorted_by(in, iterate(in.heap(), view), args.bool_or(2, false), [&](const Value& pair) {
    return fold_case(in, pair.items()[by == "key" ? 0 : 1], is_case_sensitive);
  }));
}

Value unique(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("unique", a, {"case_sensitive", "attribute"}, 0);
  auto seen = in.heap().dict();
  Values out;
  for (const Value& item : iterate(in.heap(), v)) {
    const Value key = fold_case(in, args.is_absent(1) ? item : attribute_path(in, item, args[1]), args.bool_or(0, false));
    if (seen->find(key) != nullptr) continue;
    seen->set(key, Value::none());
    out.push_back(item);
  }
  return in.heap().iterator(std::move(out));
}

Value extreme(Interpreter& in, const Value& v, const CallArguments& a, bool is_max) {
  const BoundArguments args(is_max ? "max" : "min", a, {"case_sensitive", "attribute"}, 0);
  Value best, best_key;
  bool found = false;
  for (const Value& item : iterate(in.heap(), v)) {
    const Value key = fold_case(in, args.is_absent(1) ? item : attribute_path(in, item, args[1]), args.bool_or(0, false));
    if (found && !ordered(key, best_key, is_max ? ">" : "<")) continue;
    best = item;
    best_key = key;
    found = true;
  }
  return found ? best : in.heap().undefined("No aggregated item, sequence was empty.");
}
Value min(Interpreter& in, const Value& v, CallArguments& a) { return extreme(in, v, a, false); }
Value max(Interpreter& in, const Value& v, CallArguments& a) { return extreme(in, v, a, true); }

Value sum(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("sum", a, {"attribute", "start"}, 0);
  Value total = args.has(1) ? args[1] : Value::integer(0);
  if (total.is_string()) fail("sum() can't sum strings");
  for (const Value& item : iterate(in.heap(), v)) {
    total = arithmetic(in.heap(), "+", total, args.is_absent(0) ? item : attribute_path(in, item, args[0]));
  }
  return total;
}

Value batch(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("batch", a, {"linecount", "fill_with"}, 1);
  const int64_t count = args.integer_or(0, 1);
  Values out, line;
  for (const Value& item : iterate(in.heap(), v)) {
    if (static_cast<int64_t>(line.size()) == count) out.push_back(in.heap().list(std::exchange(line, {})));
    line.push_back(item);
  }
  if (!line.empty()) {
    if (!args.is_absent(1) && static_cast<int64_t>(line.size()) < count) {
      in.budget().check_memory(static_cast<uint64_t>(count) > UINT32_MAX ? UINT64_MAX / 2 : static_cast<uint64_t>(count) * sizeof(Value));
      in.budget().steps(static_cast<uint64_t>(count));
      line.resize(static_cast<size_t>(count), args[1]);
    }
    out.push_back(in.heap().list(std::move(line)));
  }
  return in.heap().iterator(std::move(out));
}

Value slice(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("slice", a, {"slices", "fill_with"}, 1);
  const int64_t slices = args.integer_or(0, 1);
  if (slices == 0) fail("integer division or modulo by zero");
  const Values all = iterate(in.heap(), v);
  if (slices < 0) return in.heap().iterator({});
  in.budget().steps(static_cast<uint64_t>(slices));
  const auto size = static_cast<int64_t>(all.size());
  Values out;
  int64_t begin = 0;
  for (int64_t i = 0; i < slices; ++i) {
    const bool has_extra = i < size % slices;
    const int64_t end = begin + size / slices + (has_extra ? 1 : 0);
    Values part(all.begin() + begin, all.begin() + end);
    if (!args.is_absent(1) && !has_extra) part.push_back(args[1]);
    out.push_back(in.heap().list(std::move(part)));
    begin = end;
  }
  return in.heap().iterator(std::move(out));
}

Value groupby(Interpreter& in, const Value& v, CallArguments& a) {
  const BoundArguments args("groupby", a, {"attribute", "default", "case_sensitive"}, 1);
  const bool is_case_sensitive = args.bool_or(2, false);
  const auto raw_key = [&](const Value& item) {
    const Value found = attribute_path(in, item, args[0]);
    return found.is_undefined() && !args.is_absent(1) ? args[1] : found;
  };
  const auto key = [&](const Value& item) { return fold_case(in, raw_key(item), is_case_sensitive); };
  Values out;
  Values group;
  Value group_key;
  const auto finish = [&] {
    if (group.empty()) return;
    const Value grouper = raw_key(group.front());
    out.push_back(in.heap().tuple({grouper, in.heap().list(std::exchange(group, {}))}));
  };
  for (const Value& item : sorted_by(in, iterate(in.heap(), v), false, key)) {
    const Value item_key = key(item);
    if (group.empty() || !equals(item_key, group_key)) finish();
    group_key = item_key;
    group.push_back(item);
  }
  finish();
  return in.heap().list(std::move(out));
}

Value to_int(Interpreter&, const Value& v, CallArguments& a) {
  const BoundArguments args("int", a, {"default", "base"}, 0);
  require_defined(v);
  const Value fallback = args.has(0) ? args[0] : Value::integer(0);
  if (v.is_integral()) return Value::integer(v.as_int());
  if (v.is(Kind::kBigInt)) return v;
  if (v.is(Kind::kDouble)) return double_to_integer(v.as_double(), fallback);
  if (!v.is_string()) return fallback;
  if (const auto parsed = parse_python_int(v.str(), args.integer_or(1, 10))) return Value::integer(*parsed);
  const auto number = parse_python_float(v.str());
  return number ? double_to_integer(*number, fallback) : fallback;
}
Value to_float(Interpreter&, const Value& v, CallArguments& a) {
  const BoundArguments args("float", a, {"default"}, 0);
  require_defined(v);
  if (v.is_numeric()) return Value::number(v.as_double());
  if (v.is_string()) {
    if (const auto number = parse_python_float(v.str())) return Value::number(*number);
  }
  return args.has(0) ? args[0] : Value::number(0.0);
}
Value absolute(Interpreter&, const Value& v, CallArguments& a) {
  const BoundArguments args("abs", a, {}, 0);
  require_defined(v);
  if (v.is(Kind::kBigInt)) return v;
  if (v.is_integral()) return v.as_int() < 0 ? negate(v) : Value::integer(v.as_int());
  if (!v.is(Kind::kDouble)) fail("bad operand type for abs(): '" + std::string(type_name(v)) + "'");
  return Value::number(std::fabs(v.as_double()));
}
Value round(Interpreter&, const Value& v, CallArguments& a) {
  const BoundArguments args("round", a, {"precision", "method"}, 0);
  require_defined(v);
  if (!v.is_numeric()) fail("round: a number is required, not " + std::string(type_name(v)));
  const std::string method = args.has(1) ? args.text(1).bytes() : "common";
  return round_number(v, args.integer_or(0, 0), method);
}

constexpr struct {
  std::string_view name;
  NativeFunction function;
} kFilters[] = {
    {"length", length},   {"count", length}, {"list", list},       {"first", first},  {"last", last},
    {"reverse", reverse}, {"items", items},  {"join", join},       {"sort", sort},    {"dictsort", dictsort},
    {"unique", unique},   {"min", min},      {"max", max},         {"sum", sum},      {"batch", batch},
    {"slice", slice},     {"groupby", groupby}, {"int", to_int},   {"float", to_float}, {"abs", absolute},
    {"round", round},
};

}  // namespace

Value attribute_path(Interpreter& in, const Value& item, const Value& path) {
  if (!path.is_string()) return in.get_item_or_attribute(item, path);
  Value value = item;
  const std::string& all = path.str();
  for (size_t from = 0; from <= all.size();) {
    const size_t dot = std::min(all.find('.', from), all.size());
    const std::string part = all.substr(from, dot - from);
    const bool is_number = !part.empty() && part.size() < 19 && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    value = in.get_item_or_attribute(value, is_number ? Value::integer(std::stoll(part)) : in.heap().string(part));
    from = dot + 1;
  }
  return value;
}

NativeFunction find_sequence_filter(std::string_view name) {
  for (const auto& entry : kFilters) {
    if (entry.name == name) return entry.function;
  }
  return nullptr;
}

}  // namespace pagoda::jinja
