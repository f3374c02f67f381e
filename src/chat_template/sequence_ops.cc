// Walking, slicing and subscripting.

#include <algorithm>

#include "base/utf8.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

Values characters(const Heap& heap, const Value& value) {
  const Text& text = value.text();
  const auto count = static_cast<uint64_t>(length_of(value));
  heap.budget().steps(count);
  // Each character becomes an object of its own.
  heap.budget().check_memory(count * (sizeof(Value) + sizeof(StringObject)));
  Values out;
  out.reserve(count);
  for (size_t at = 0; at < text.size();) {
    const size_t length = decode_utf8(text.view().substr(at)).length;
    out.push_back(heap.string(text.slice(at, at + length)));
    at += length;
  }
  return out;
}

Values view_items(const Heap& heap, const DictViewObject& view) {
  const auto& entries = view.dict.dict().entries();
  heap.budget().check_memory(entries.size() * sizeof(Value));
  Values out;
  out.reserve(entries.size());
  for (const auto& [key, value] : entries) {
    if (view.part == DictPart::kKeys) out.push_back(key);
    if (view.part == DictPart::kValues) out.push_back(value);
    if (view.part == DictPart::kItems) out.push_back(heap.tuple({key, value}));
  }
  return out;
}

struct SliceBounds {
  int64_t start = 0, step = 1, count = 0;
};

int64_t slice_index(const Value& value) {
  if (!value.is_integral()) fail("slice indices must be integers or None");
  return value.as_int();
}

// Python's slice.indices(): every result is inside [-1, length], so no later arithmetic can overflow.
SliceBounds bounds_of(int64_t length, const Value& start, const Value& stop, const Value& step) {
  SliceBounds out;
  if (!step.is_none()) out.step = slice_index(step);
  if (out.step == 0) fail("slice step cannot be zero");
  const int64_t low = out.step < 0 ? -1 : 0;
  const int64_t high = out.step < 0 ? length - 1 : length;
  const auto clamp = [&](const Value& v, int64_t absent) {
    if (v.is_none()) return absent;
    int64_t i = slice_index(v);
    if (i < 0) i = i < -length ? low : i + length;
    return std::clamp(i, low, high);
  };
  out.start = clamp(start, out.step < 0 ? high : low);
  const int64_t end = clamp(stop, out.step < 0 ? low : high);
  const uint64_t distance = static_cast<uint64_t>(out.step < 0 ? std::max<int64_t>(0, out.start - end)
                                                               : std::max<int64_t>(0, end - out.start));
  const uint64_t stride = out.step < 0 ? ~static_cast<uint64_t>(out.step) + 1 : static_cast<uint64_t>(out.step);
  out.count = static_cast<int64_t>(distance == 0 ? 0 : (distance - 1) / stride + 1);
  return out;
}

Value slice_text(const Heap& heap, const Value& value, const SliceBounds& bounds) {
  const auto& object = value.object<StringObject>();
  const Text& text = object.text;
  heap.budget().work(text.size());
  if (bounds.step == 1) {
    const auto first = static_cast<size_t>(bounds.start);
    const auto count = static_cast<size_t>(bounds.count);
    const size_t begin = object.ascii ? first : code_point_offset(text.view(), first);
    const size_t length = object.ascii ? count : code_point_offset(text.view().substr(begin), count);
    return heap.string(text.slice(begin, begin + length), object.is_markup);
  }
  const Values all = characters(heap, value);
  Text out;
  for (int64_t i = 0; i < bounds.count; ++i) {
    out.append(all[static_cast<size_t>(bounds.start + i * bounds.step)].text());
  }
  return heap.string(std::move(out), object.is_markup);
}

}  // namespace

Values iterate(const Heap& heap, const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined: return {};
    case Kind::kString: return characters(heap, value);
    case Kind::kList:
    case Kind::kTuple:
      heap.budget().steps(value.items().size() / 4);
      heap.budget().check_memory(value.items().size() * sizeof(Value));
      return value.items();
    case Kind::kDict: return view_items(heap, DictViewObject(&heap.budget(), value, DictPart::kKeys));
    case Kind::kDictView:
      heap.budget().steps(static_cast<uint64_t>(length_of(value)));
      return view_items(heap, value.object<DictViewObject>());
    case Kind::kRange: {
      const auto& range = value.object<RangeObject>();
      heap.budget().steps(static_cast<uint64_t>(range.length) / 4);
      heap.budget().check_memory(static_cast<uint64_t>(range.length) * sizeof(Value));
      Values out;
      out.reserve(static_cast<size_t>(range.length));
      for (int64_t i = 0; i < range.length; ++i) out.push_back(Value::integer(range.at(i)));
      return out;
    }
    case Kind::kIterator: {
      auto& iterator = value.object<IteratorObject>();
      heap.budget().steps(iterator.items.size() - iterator.position);
      Values out(iterator.items.begin() + static_cast<ptrdiff_t>(iterator.position), iterator.items.end());
      iterator.position = iterator.items.size();
      return out;
    }
    default: fail("'" + std::string(type_name(value)) + "' object is not iterable");
  }
}

Value slice_value(const Heap& heap, const Value& value, const Value& start, const Value& stop, const Value& step) {
  require_defined(value);
  require_defined(start);
  require_defined(stop);
  require_defined(step);
  if (!value.is_string() && !value.is_sequence() && !value.is(Kind::kRange)) {
    fail("'" + std::string(type_name(value)) + "' object is not subscriptable by a slice");
  }
  const SliceBounds bounds = bounds_of(length_of(value), start, stop, step);
  if (value.is_string()) return slice_text(heap, value, bounds);
  if (value.is(Kind::kRange)) {
    const auto& range = value.object<RangeObject>();
    int64_t stride = 0;
    if (__builtin_mul_overflow(range.step, bounds.step, &stride)) fail("range step is too big");
    const int64_t first = range.start + bounds.start * range.step;
    return Value(Kind::kRange, std::make_shared<RangeObject>(&heap.budget(), first, first + bounds.count * stride, stride));
  }
  const Values& items = value.items();
  heap.budget().steps(static_cast<uint64_t>(bounds.count) / 4);
  heap.budget().check_memory(static_cast<uint64_t>(bounds.count) * sizeof(Value));
  Values out;
  out.reserve(static_cast<size_t>(bounds.count));
  for (int64_t i = 0; i < bounds.count; ++i) out.push_back(items[static_cast<size_t>(bounds.start + i * bounds.step)]);
  return value.is(Kind::kList) ? heap.list(std::move(out)) : heap.tuple(std::move(out));
}

bool get_item(const Heap& heap, const Value& value, const Value& key, Value& out) {
  require_defined(value);
  if (value.is(Kind::kDict)) {
    if (key.is(Kind::kList) || key.is(Kind::kDict)) return false;
    const Value* found = value.dict().find(key);
    if (found != nullptr) out = *found;
    return found != nullptr;
  }
  if (!value.is_string() && !value.is_sequence() && !value.is(Kind::kRange)) return false;
  if (!key.is_integral()) return false;
  const int64_t length = length_of(value);
  int64_t at = key.as_int();
  if (at < 0) at += at < -length ? 0 : length;
  if (at < 0 || at >= length) return false;
  if (value.is(Kind::kRange)) {
    out = Value::integer(value.object<RangeObject>().at(at));
  } else if (value.is_string()) {
    out = slice_text(heap, value, {at, 1, 1});
  } else {
    out = value.items()[static_cast<size_t>(at)];
  }
  return true;
}

}  // namespace pagoda::jinja
