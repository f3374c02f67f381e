#include "chat_template/globals.h"

#include <array>
#include <ctime>

#include "chat_template/arguments.h"
#include "chat_template/interpreter.h"
#include "chat_template/value_ops.h"

namespace pagoda::jinja {
namespace {

constexpr std::array<const char*, 7> kDays = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr std::array<const char*, 12> kMonths = {"January", "February", "March",     "April",   "May",      "June",
                                                 "July",    "August",   "September", "October", "November", "December"};
constexpr size_t kMaxTimeBytes = 4096;

Value make_range(Interpreter& in, const Value&, CallArguments& arguments) {
  const BoundArguments args("range", arguments, {"start", "stop", "step"}, 1);
  const int64_t first = args.integer_or(0, 0);
  const int64_t step = args.integer_or(2, 1);
  if (step == 0) fail("range() arg 3 must not be zero");
  const int64_t start = args.has(1) ? first : 0;
  const int64_t stop = args.has(1) ? args.integer_or(1, 0) : first;
  return Value(Kind::kRange, std::make_shared<RangeObject>(&in.budget(), start, stop, step));
}

// The pairs of dict(x, **keywords): x is a dict or an iterable of pairs.
std::shared_ptr<DictObject> collect_dict(Interpreter& in, const CallArguments& arguments, const char* function) {
  if (arguments.positional.size() > 1) fail(std::string(function) + "() expected at most 1 argument");
  auto out = in.heap().dict();
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.is(Kind::kDict)) {
      in.budget().steps(source.dict().entries().size());
      for (const auto& [key, value] : source.dict().entries()) out->set(key, value);
    } else {
      for (const Value& pair : iterate(in.heap(), source)) {
        const Values parts = iterate(in.heap(), pair);
        if (parts.size() != 2) fail("dictionary update sequence needs pairs");
        out->set(parts[0], parts[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.keyword) out->set(in.heap().string(name), value);
  return out;
}

Value make_dict(Interpreter& in, const Value&, CallArguments& arguments) {
  return Value(Kind::kDict, collect_dict(in, arguments, "dict"));
}

Value make_namespace(Interpreter& in, const Value&, CallArguments& arguments) {
  auto object = std::make_shared<NamespaceObject>(&in.budget());
  const auto pairs = collect_dict(in, arguments, "namespace");
  for (const auto& [key, value] : pairs->entries()) object->set(require_text("namespace", key).bytes(), value);
  return in.make_namespace(std::move(object));
}

Value make_cycler(Interpreter& in, const Value&, CallArguments& arguments) {
  if (arguments.positional.empty() || !arguments.keyword.empty()) fail("cycler(): at least one item has to be provided");
  return Value(Kind::kCycler, std::make_shared<CyclerObject>(&in.budget(), in.heap().tuple(std::move(arguments.positional))));
}

Value make_joiner(Interpreter& in, const Value&, CallArguments& arguments) {
  const BoundArguments args("joiner", arguments, {"sep"}, 0);
  return Value(Kind::kJoiner, std::make_shared<JoinerObject>(&in.budget(), args.has(0) ? args[0] : in.heap().string(", ")));
}

Value raise_exception(Interpreter& in, const Value&, CallArguments& arguments) {
  const BoundArguments args("raise_exception", arguments, {"message"}, 1);
  fail(to_text(in.heap(), args[0]).bytes());
}

Value strftime_now(Interpreter& in, const Value&, CallArguments& arguments) {
  const BoundArguments args("strftime_now", arguments, {"format"}, 1);
  const Text& format = args.text(0);
  return in.heap().string(format_time(format.view(), in.now_unix_seconds()), format.is_trusted());
}

std::string padded(long long value, int width, char fill) {
  const std::string digits = std::to_string(value);
  return std::string(digits.size() < static_cast<size_t>(width) ? static_cast<size_t>(width) - digits.size() : 0, fill) + digits;
}

// One conversion of format_time; `flag` is glibc's '-', '_', '0' or 0 for the conversion's own padding.
bool append_time_field(const std::tm& tm, char field, char flag, std::string& out) {
  const auto number = [&](long long value, int width, char fill) {
    if (flag == '-') width = 0;
    if (flag == '_') fill = ' ';
    if (flag == '0') fill = '0';
    out += padded(value, width, fill);
  };
  const int hour12 = tm.tm_hour % 12 == 0 ? 12 : tm.tm_hour % 12;
  const auto composite = [&](std::string_view fields) {
    for (const char c : fields) c >= 'A' ? static_cast<void>(append_time_field(tm, c, 0, out)) : static_cast<void>(out += c);
  };
  switch (field) {
    case 'Y': number(1900LL + tm.tm_year, 0, '0'); break;
    case 'y': number((1900LL + tm.tm_year) % 100, 2, '0'); break;
    case 'C': number((1900LL + tm.tm_year) / 100, 2, '0'); break;
    case 'm': number(tm.tm_mon + 1, 2, '0'); break;
    case 'd': number(tm.tm_mday, 2, '0'); break;
    case 'e': number(tm.tm_mday, 2, ' '); break;
    case 'H': number(tm.tm_hour, 2, '0'); break;
    case 'I': number(hour12, 2, '0'); break;
    case 'M': number(tm.tm_min, 2, '0'); break;
    case 'S': number(tm.tm_sec, 2, '0'); break;
    case 'j': number(tm.tm_yday + 1, 3, '0'); break;
    case 'w': number(tm.tm_wday, 1, '0'); break;
    case 'u': number(tm.tm_wday == 0 ? 7 : tm.tm_wday, 1, '0'); break;
    case 'U': number((tm.tm_yday + 7 - tm.tm_wday) / 7, 2, '0'); break;
    case 'W': number((tm.tm_yday + 7 - (tm.tm_wday + 6) % 7) / 7, 2, '0'); break;
    case 'p': out += tm.tm_hour < 12 ? "AM" : "PM"; break;
    case 'A': out += kDays[static_cast<size_t>(tm.tm_wday)]; break;
    case 'a': out += std::string_view(kDays[static_cast<size_t>(tm.tm_wday)]).substr(0, 3); break;
    case 'B': out += kMonths[static_cast<size_t>(tm.tm_mon)]; break;
    case 'b':
    case 'h': out += std::string_view(kMonths[static_cast<size_t>(tm.tm_mon)]).substr(0, 3); break;
    case 'F': composite("Y-m-d"); break;
    case 'D':
    case 'x': composite("m/d/y"); break;
    case 'T':
    case 'X': composite("H:M:S"); break;
    case 'R': composite("H:M"); break;
    case 'c': composite("a b e H:M:S Y"); break;
    case 'f': out += "000000"; break;
    case 'Z':
    case 'z': break;  // a naive datetime has no zone
    case 'n': out += '\n'; break;
    case 't': out += '\t'; break;
    case '%': out += '%'; break;
    default: return false;
  }
  return true;
}

}  // namespace

std::string format_time(std::string_view format, long long unix_seconds) {
  const auto time = static_cast<std::time_t>(unix_seconds);
  std::tm tm{};
  if (gmtime_r(&time, &tm) == nullptr) fail("strftime_now(): the time has no date");
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (out.size() > kMaxTimeBytes) fail_limit("strftime_now(): the text is longer than 4096 bytes");
    if (format[i] != '%' || i + 1 >= format.size()) {
      out += format[i];
      continue;
    }
    const size_t begin = i++;
    char flag = 0;
    if ((format[i] == '-' || format[i] == '_' || format[i] == '0') && i + 1 < format.size()) flag = format[i++];
    if (!append_time_field(tm, format[i], flag, out)) out += format.substr(begin, i + 1 - begin);
  }
  return out;
}

void add_globals(Interpreter& interpreter) {
  const std::pair<const char*, NativeFunction> kFunctions[] = {
      {"range", make_range},   {"dict", make_dict},     {"namespace", make_namespace},
      {"cycler", make_cycler}, {"joiner", make_joiner}, {"raise_exception", raise_exception},
      {"strftime_now", strftime_now}};
  for (const auto& [name, function] : kFunctions) {
    interpreter.set_variable(name, interpreter.heap().function(name, function));
  }
}

}  // namespace pagoda::jinja
