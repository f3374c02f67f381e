#include "formats/gguf/gguf_file.h"

#include <limits>

#include "base/check.h"
#include "base/checked_math.h"
#include "formats/gguf/byte_source.h"
#include "formats/gguf/gguf_parser.h"
#include "formats/gguf/gguf_shards.h"

namespace pagoda {

std::string_view gguf_value_type_name(GgufType type) {
  static constexpr std::string_view kNames[] = {"uint8",   "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
                                                "bool",    "string", "array",  "uint64", "int64",  "float64"};
  const auto index = static_cast<uint32_t>(type);
  return index < std::size(kNames) ? kNames[index] : std::string_view("unknown");
}

size_t GgufArray::size() const {
  return std::visit([](const auto& v) { return v.size(); }, values);
}

uint64_t GgufTensorInfo::num_elements() const {
  uint64_t n = 1;
  for (const uint64_t dim : dims) n *= dim;
  return n;
}

struct GgufFile::Impl {
  std::vector<std::unique_ptr<ByteSource>> sources;
  ParsedGguf parsed;
  std::unordered_map<std::string_view, size_t> keys;
  std::unordered_map<std::string_view, size_t> names;

  // Views into `parsed`, which does not change afterwards.
  void build_index() {
    for (size_t i = 0; i < parsed.metadata.size(); ++i) keys.emplace(parsed.metadata[i].first, i);
    for (size_t i = 0; i < parsed.tensors.size(); ++i) names.emplace(parsed.tensors[i].name, i);
  }
  Status wrong_type(std::string_view key, const GgufValue& value, std::string_view wanted) const {
    return data_loss(sources[0]->name() + ": metadata '" + std::string(key) + "' must be " + std::string(wanted) +
                     ", found " + std::string(gguf_value_type_name(value.type)));
  }
};

GgufFile::GgufFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GgufFile::GgufFile(GgufFile&&) noexcept = default;
GgufFile& GgufFile::operator=(GgufFile&&) noexcept = default;
GgufFile::~GgufFile() = default;

Result<GgufFile> GgufFile::open(const std::string& path, const Options& options) {
  auto impl = std::make_unique<Impl>();
  PAGODA_ASSIGN_OR_RETURN(GgufShards shards, open_gguf_shards(path, options));
  impl->sources = std::move(shards.sources);
  impl->parsed = std::move(shards.joined);
  impl->build_index();
  return GgufFile(std::move(impl));
}

Result<GgufFile> GgufFile::parse(std::span<const uint8_t> bytes, const Options& options) {
  auto impl = std::make_unique<Impl>();
  impl->sources.push_back(make_memory_source(bytes));
  PAGODA_ASSIGN_OR_RETURN(impl->parsed, parse_gguf(*impl->sources[0], options));
  impl->build_index();
  return GgufFile(std::move(impl));
}

uint32_t GgufFile::version() const { return impl_->parsed.version; }
const std::string& GgufFile::path() const { return impl_->sources[0]->name(); }

uint64_t GgufFile::total_file_bytes() const {
  uint64_t total = 0;
  for (const auto& source : impl_->sources) total += source->size();
  return total;
}

std::span<const std::pair<std::string, GgufValue>> GgufFile::metadata() const { return impl_->parsed.metadata; }

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto it = impl_->keys.find(key);
  return it == impl_->keys.end() ? nullptr : &impl_->parsed.metadata[it->second].second;
}

Result<std::optional<uint64_t>> GgufFile::get_uint(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::optional<uint64_t>();
  if (const auto* u = std::get_if<uint64_t>(&value->data)) return std::optional<uint64_t>(*u);
  if (const auto* i = std::get_if<int64_t>(&value->data); i != nullptr && *i >= 0) {
    return std::optional<uint64_t>(static_cast<uint64_t>(*i));
  }
  return impl_->wrong_type(key, *value, "an integer that is not negative");
}

Result<std::optional<double>> GgufFile::get_float(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::optional<double>();
  if (const auto* f = std::get_if<float>(&value->data)) return std::optional<double>(*f);
  if (const auto* d = std::get_if<double>(&value->data)) return std::optional<double>(*d);
  if (const auto* u = std::get_if<uint64_t>(&value->data)) return std::optional<double>(static_cast<double>(*u));
  if (const auto* i = std::get_if<int64_t>(&value->data)) return std::optional<double>(static_cast<double>(*i));
  return impl_->wrong_type(key, *value, "a number");
}

Result<std::optional<bool>> GgufFile::get_bool(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::optional<bool>();
  if (const auto* b = std::get_if<bool>(&value->data)) return std::optional<bool>(*b);
  return impl_->wrong_type(key, *value, "a bool");
}

Result<const std::string*> GgufFile::get_string(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return static_cast<const std::string*>(nullptr);
  if (const auto* text = std::get_if<std::string>(&value->data)) return text;
  return impl_->wrong_type(key, *value, "a string");
}

Result<const GgufArray*> GgufFile::get_array(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return static_cast<const GgufArray*>(nullptr);
  if (const auto* array = std::get_if<GgufArray>(&value->data)) return array;
  return impl_->wrong_type(key, *value, "an array");
}

std::span<const GgufTensorInfo> GgufFile::tensors() const { return impl_->parsed.tensors; }

const GgufTensorInfo* GgufFile::find_tensor(std::string_view name) const {
  const auto it = impl_->names.find(name);
  return it == impl_->names.end() ? nullptr : &impl_->parsed.tensors[it->second];
}

std::span<const GgufUnsupportedTensor> GgufFile::unsupported_tensors() const { return impl_->parsed.unsupported; }

Status GgufFile::read_tensor(const GgufTensorInfo& tensor, uint64_t begin, std::span<uint8_t> dst) const {
  const auto end = checked_add(begin, dst.size());
  PAGODA_CHECK(end && *end <= tensor.num_bytes && tensor.shard < impl_->sources.size());
  return impl_->sources[tensor.shard]->read_at(tensor.offset + begin, dst).with_context("tensor '" + tensor.name + "'");
}

}  // namespace pagoda
