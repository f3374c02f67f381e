#include "formats/gguf/gguf_parser.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_set>

#include "base/checked_math.h"

namespace pagoda {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMinAlignment = 8;
constexpr uint64_t kMaxAlignment = 64 << 10;
constexpr int kMaxArrayDepth = 8;  // nesting uses the call stack
constexpr uint32_t kMaxDims = 4;

// Bytes that one value takes in the file at the least; 0 for an unknown type.
uint64_t min_value_bytes(GgufType type) {
  switch (type) {
    case GgufType::kUint8: case GgufType::kInt8: case GgufType::kBool: return 1;
    case GgufType::kUint16: case GgufType::kInt16: return 2;
    case GgufType::kUint32: case GgufType::kInt32: case GgufType::kFloat32: return 4;
    case GgufType::kUint64: case GgufType::kInt64: case GgufType::kFloat64: case GgufType::kString: return 8;
    case GgufType::kArray: return 12;
  }
  return 0;
}

// Names from the file go into error texts: keep them short and free of control characters.
std::string printable(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, 80)) out += static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c;
  return out + (text.size() > 80 ? "...'" : "'");
}

// What a file that is not GGUF seems to be, with the remedy.
std::string_view describe_other_format(std::span<const uint8_t> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.starts_with("PK\x03\x04")) return "a zip archive (perhaps a PyTorch checkpoint); convert it to GGUF first";
  if (text.starts_with("version https://git-lfs")) return "a git-lfs pointer, not the model; run `git lfs pull`";
  if (text.starts_with("<")) return "an HTML or XML page, not the model; download the file itself";
  if (text.starts_with("\x80") && head.size() > 1 && head[1] >= 2 && head[1] <= 5) {
    return "a Python pickle, which Pagoda never loads; convert it to GGUF first";
  }
  if (text.size() > 8 && text[8] == '{') return "a safetensors file; convert it to GGUF first";
  if (text.starts_with("lmgg") || text.starts_with("fmgg") || text.starts_with("tjgg")) {
    return "a GGML file from before GGUF; convert it again";
  }
  return "of a format that Pagoda does not know";
}

class Parser {
 public:
  Parser(const ByteSource& source, const GgufFile::Options& options) : reader_(source), options_(options) {}

  Result<ParsedGguf> run() {
    PAGODA_RETURN_IF_ERROR(read_header());
    for (uint64_t i = 0; i < num_metadata_; ++i) PAGODA_RETURN_IF_ERROR(read_metadata(i));
    PAGODA_RETURN_IF_ERROR(find_alignment());
    for (uint64_t i = 0; i < num_tensors_; ++i) PAGODA_RETURN_IF_ERROR(read_tensor_info(i));
    PAGODA_RETURN_IF_ERROR(place_tensors());
    return std::move(out_);
  }

 private:
  struct Extent {
    uint64_t begin;
    uint64_t end;
    size_t tensor;
  };

  Status read_header();
  Status check_count(uint64_t count, uint64_t max, uint64_t min_bytes_each, std::string_view field, uint64_t offset);
  Status read_string(std::string& out, uint64_t max, std::string_view field);
  Status read_metadata(uint64_t index);
  Status read_value(GgufValue& out, GgufType type, const std::string& field);
  Status read_array(GgufArray& out, int depth, const std::string& field);
  template <typename Stored, typename InFile>
  Status read_numbers(GgufArray& out, uint64_t count, const std::string& field);
  Status read_bools(GgufArray& out, uint64_t count, const std::string& field);
  Status read_strings(GgufArray& out, uint64_t count, const std::string& field);
  Status find_alignment();
  Status read_tensor_info(uint64_t index);
  Status read_dims(std::vector<uint64_t>& dims, const std::string& field);
  Status size_tensor(GgufTensorInfo& tensor, uint64_t dims_offset, const std::string& field);
  Status place_tensors();

  BoundedReader reader_;
  const GgufFile::Options& options_;
  ParsedGguf out_;
  uint64_t num_tensors_ = 0;
  uint64_t num_metadata_ = 0;
  uint64_t alignment_ = kDefaultAlignment;
  std::unordered_set<std::string> names_;
  std::vector<uint64_t> offset_fields_;  // where each tensor's offset stands, for error texts
};

Status Parser::read_header() {
  const ByteSource& source = reader_.source();
  uint32_t magic = 0;
  std::vector<uint8_t> head(std::min<uint64_t>(source.size(), 64));
  PAGODA_RETURN_IF_ERROR(source.read_at(0, head));
  if (head.size() >= 4) std::memcpy(&magic, head.data(), 4);
  if (head.empty()) return reader_.error("magic", 0, "the file is empty");
  if (magic != kMagic) {
    return reader_.error("magic", 0, "not a GGUF file; it seems to be " + std::string(describe_other_format(head)));
  }
  PAGODA_RETURN_IF_ERROR(reader_.read(magic, "magic"));
  PAGODA_RETURN_IF_ERROR(reader_.read(out_.version, "version"));
  const std::string where = source.name() + ": version at byte 4: ";
  if (out_.version == 1) return unimplemented(where + "GGUF version 1 is not supported; convert the model again");
  if ((out_.version & 0xffff) == 0 && out_.version != 0) {
    return unimplemented(where + "a big-endian GGUF file; convert the model for little endian");
  }
  if (out_.version != 2 && out_.version != 3) {
    return unimplemented(where + "GGUF version " + std::to_string(out_.version) + "; Pagoda reads 2 and 3");
  }
  PAGODA_RETURN_IF_ERROR(reader_.read(num_tensors_, "tensor count"));
  PAGODA_RETURN_IF_ERROR(reader_.read(num_metadata_, "metadata count"));
  // A metadata entry is at least a length, a type and a value byte; a tensor: length, dims count, one dim, type, offset.
  PAGODA_RETURN_IF_ERROR(check_count(num_tensors_, options_.limits.max_tensors, 8 + 4 + 8 + 4 + 8, "tensor count", 8));
  return check_count(num_metadata_, options_.limits.max_metadata, 8 + 4 + 1, "metadata count", 16);
}

Status Parser::check_count(uint64_t count, uint64_t max, uint64_t min_bytes_each, std::string_view field,
                           uint64_t offset) {
  if (count > max) {
    return reader_.error(field, offset, std::to_string(count) + " is over the limit of " + std::to_string(max));
  }
  const auto bytes = checked_mul(count, min_bytes_each);
  if (!bytes || *bytes > reader_.remaining()) {
    return reader_.error(field, offset,
                         std::to_string(count) + " cannot fit in the " + std::to_string(reader_.remaining()) +
                             " bytes that follow; the file is truncated or damaged");
  }
  return {};
}

Status Parser::read_string(std::string& out, uint64_t max, std::string_view field) {
  const uint64_t offset = reader_.position();
  uint64_t length = 0;
  PAGODA_RETURN_IF_ERROR(reader_.read(length, field));
  PAGODA_RETURN_IF_ERROR(check_count(length, max, 1, field, offset));
  out.resize(length);
  return reader_.read_bytes({reinterpret_cast<uint8_t*>(out.data()), out.size()}, field);
}

Status Parser::read_metadata(uint64_t index) {
  const uint64_t offset = reader_.position();
  const std::string position = "metadata entry " + std::to_string(index);
  std::string key;
  PAGODA_RETURN_IF_ERROR(read_string(key, options_.limits.max_key_bytes, position + " key"));
  if (key.empty()) return reader_.error(position + " key", offset, "empty");
  const std::string field = "metadata " + printable(key);
  if (!names_.insert(key).second) return reader_.error(field, offset, "the key occurs twice");
  const uint64_t type_offset = reader_.position();
  uint32_t type = 0;
  PAGODA_RETURN_IF_ERROR(reader_.read(type, field + " type"));
  if (min_value_bytes(static_cast<GgufType>(type)) == 0) {
    return reader_.error(field + " type", type_offset, "unknown value type " + std::to_string(type));
  }
  GgufValue value;
  PAGODA_RETURN_IF_ERROR(read_value(value, static_cast<GgufType>(type), field));
  out_.metadata.emplace_back(std::move(key), std::move(value));
  return {};
}

template <typename Stored, typename InFile>
Status read_number(BoundedReader& reader, GgufValue& out, const std::string& field) {
  InFile v{};
  PAGODA_RETURN_IF_ERROR(reader.read(v, field));
  out.data = static_cast<Stored>(v);
  return {};
}

Status Parser::read_value(GgufValue& out, GgufType type, const std::string& field) {
  out.type = type;
  switch (type) {
    case GgufType::kUint8: return read_number<uint64_t, uint8_t>(reader_, out, field);
    case GgufType::kInt8: return read_number<int64_t, int8_t>(reader_, out, field);
    case GgufType::kUint16: return read_number<uint64_t, uint16_t>(reader_, out, field);
    case GgufType::kInt16: return read_number<int64_t, int16_t>(reader_, out, field);
    case GgufType::kUint32: return read_number<uint64_t, uint32_t>(reader_, out, field);
    case GgufType::kInt32: return read_number<int64_t, int32_t>(reader_, out, field);
    case GgufType::kUint64: return read_number<uint64_t, uint64_t>(reader_, out, field);
    case GgufType::kInt64: return read_number<int64_t, int64_t>(reader_, out, field);
    case GgufType::kFloat32: return read_number<float, float>(reader_, out, field);
    case GgufType::kFloat64: return read_number<double, double>(reader_, out, field);
    case GgufType::kBool: {
      const uint64_t offset = reader_.position();
      uint8_t v = 0;
      PAGODA_RETURN_IF_ERROR(reader_.read(v, field));
      if (v > 1) return reader_.error(field, offset, "a bool must be 0 or 1, found " + std::to_string(v));
      out.data = v == 1;
      return {};
    }
    case GgufType::kString: {
      std::string text;
      PAGODA_RETURN_IF_ERROR(read_string(text, options_.limits.max_string_bytes, field));
      out.data = std::move(text);
      return {};
    }
    case GgufType::kArray: return read_array(out.data.emplace<GgufArray>(), 1, field);
  }
  return reader_.error(field, reader_.position(), "unknown value type");
}

template <typename Stored, typename InFile>
Status Parser::read_numbers(GgufArray& out, uint64_t count, const std::string& field) {
  auto& values = out.values.emplace<std::vector<Stored>>(count);
  for (Stored& value : values) {
    InFile v{};
    PAGODA_RETURN_IF_ERROR(reader_.read(v, field));
    value = static_cast<Stored>(v);
  }
  return {};
}

Status Parser::read_bools(GgufArray& out, uint64_t count, const std::string& field) {
  const uint64_t offset = reader_.position();
  auto& values = out.values.emplace<std::vector<uint8_t>>(count);
  PAGODA_RETURN_IF_ERROR(reader_.read_bytes(values, field));
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] > 1) return reader_.error(field, offset + i, "a bool must be 0 or 1, found " + std::to_string(values[i]));
  }
  return {};
}

Status Parser::read_strings(GgufArray& out, uint64_t count, const std::string& field) {
  auto& strings = out.values.emplace<GgufStringArray>();
  std::string text;
  for (uint64_t i = 0; i < count; ++i) {
    PAGODA_RETURN_IF_ERROR(read_string(text, options_.limits.max_string_bytes, field));
    strings.push_back(text);
  }
  return {};
}

Status Parser::read_array(GgufArray& out, int depth, const std::string& field) {
  const uint64_t offset = reader_.position();
  if (depth > kMaxArrayDepth) {
    return reader_.error(field, offset, "arrays nested deeper than " + std::to_string(kMaxArrayDepth));
  }
  uint32_t type = 0;
  uint64_t count = 0;
  PAGODA_RETURN_IF_ERROR(reader_.read(type, field + " element type"));
  PAGODA_RETURN_IF_ERROR(reader_.read(count, field + " length"));
  out.element_type = static_cast<GgufType>(type);
  const uint64_t element_bytes = min_value_bytes(out.element_type);
  if (element_bytes == 0) {
    return reader_.error(field + " element type", offset, "unknown value type " + std::to_string(type));
  }
  PAGODA_RETURN_IF_ERROR(
      check_count(count, options_.limits.max_array_elements, element_bytes, field + " length", offset + 4));
  switch (out.element_type) {
    case GgufType::kUint8: return read_numbers<uint64_t, uint8_t>(out, count, field);
    case GgufType::kInt8: return read_numbers<int64_t, int8_t>(out, count, field);
    case GgufType::kUint16: return read_numbers<uint64_t, uint16_t>(out, count, field);
    case GgufType::kInt16: return read_numbers<int64_t, int16_t>(out, count, field);
    case GgufType::kUint32: return read_numbers<uint64_t, uint32_t>(out, count, field);
    case GgufType::kInt32: return read_numbers<int64_t, int32_t>(out, count, field);
    case GgufType::kUint64: return read_numbers<uint64_t, uint64_t>(out, count, field);
    case GgufType::kInt64: return read_numbers<int64_t, int64_t>(out, count, field);
    case GgufType::kFloat32: return read_numbers<float, float>(out, count, field);
    case GgufType::kFloat64: return read_numbers<double, double>(out, count, field);
    case GgufType::kBool: return read_bools(out, count, field);
    case GgufType::kString: return read_strings(out, count, field);
    case GgufType::kArray: break;
  }
  auto& arrays = out.values.emplace<std::vector<GgufArray>>();
  for (uint64_t i = 0; i < count; ++i) PAGODA_RETURN_IF_ERROR(read_array(arrays.emplace_back(), depth + 1, field));
  return {};
}

Status Parser::find_alignment() {
  names_.clear();
  for (const auto& [key, value] : out_.metadata) {
    if (key != "general.alignment") continue;
    const auto* number = std::get_if<uint64_t>(&value.data);
    if (value.type != GgufType::kUint32 || number == nullptr || !std::has_single_bit(*number) ||
        *number < kMinAlignment || *number > kMaxAlignment) {
      return reader_.error("metadata 'general.alignment'", reader_.position(),
                           "must be a uint32, a power of two from 8 to 65536 (seen at the end of the metadata)");
    }
    alignment_ = *number;
  }
  return {};
}

Status Parser::read_dims(std::vector<uint64_t>& dims, const std::string& field) {
  const uint64_t offset = reader_.position();
  uint32_t count = 0;
  PAGODA_RETURN_IF_ERROR(reader_.read(count, field + " number of dimensions"));
  if (count < 1 || count > kMaxDims) {
    return reader_.error(field + " number of dimensions", offset,
                         std::to_string(count) + " is not in 1 to " + std::to_string(kMaxDims));
  }
  dims.resize(count);
  for (uint64_t& dim : dims) {
    const uint64_t dim_offset = reader_.position();
    PAGODA_RETURN_IF_ERROR(reader_.read(dim, field + " dimension"));
    // A weight without elements has no use; refusing it here keeps zero divisors out of every layer above.
    if (dim == 0) return reader_.error(field + " dimension", dim_offset, "zero-size tensors are not supported");
  }
  return {};
}

Status Parser::size_tensor(GgufTensorInfo& tensor, uint64_t dims_offset, const std::string& field) {
  const DTypeTraits& row = traits(tensor.dtype);
  if (tensor.dims[0] % row.block_elements != 0) {
    return reader_.error(field + " dimension", dims_offset + 4,
                         std::to_string(tensor.dims[0]) + " is not a multiple of the " + std::string(row.name) +
                             " block of " + std::to_string(row.block_elements));
  }
  std::optional<uint64_t> bytes = tensor.dims[0] / row.block_elements;
  uint64_t elements = 1;  // checked too: num_elements() multiplies the same numbers
  for (size_t i = 0; i < tensor.dims.size() && bytes; ++i) {
    if (i > 0) bytes = checked_mul(*bytes, tensor.dims[i]);
    const auto product = checked_mul(elements, tensor.dims[i]);
    if (!product) bytes = std::nullopt;
    elements = product.value_or(0);
  }
  if (bytes) bytes = checked_mul(*bytes, row.block_bytes);
  if (!bytes || *bytes > reader_.source().size()) {
    return reader_.error(field + " dimensions", dims_offset,
                         "the tensor would be larger than the file of " + std::to_string(reader_.source().size()) +
                             " bytes; the file is truncated or damaged");
  }
  tensor.num_bytes = *bytes;
  return {};
}

Status Parser::read_tensor_info(uint64_t index) {
  const uint64_t offset = reader_.position();
  GgufTensorInfo tensor;
  const std::string position = "tensor " + std::to_string(index) + " name";
  PAGODA_RETURN_IF_ERROR(read_string(tensor.name, options_.limits.max_key_bytes, position));
  if (tensor.name.empty()) return reader_.error(position, offset, "empty");
  const std::string field = "tensor " + printable(tensor.name);
  if (!names_.insert(tensor.name).second) return reader_.error(field, offset, "the name occurs twice");
  const uint64_t dims_offset = reader_.position();
  PAGODA_RETURN_IF_ERROR(read_dims(tensor.dims, field));
  const uint64_t type_offset = reader_.position();
  uint32_t type = 0;
  PAGODA_RETURN_IF_ERROR(reader_.read(type, field + " type"));
  const uint64_t offset_field = reader_.position();
  PAGODA_RETURN_IF_ERROR(reader_.read(tensor.offset, field + " offset"));
  const auto dtype = dtype_from_gguf_id(type);
  if (!dtype) {
    if (options_.unknown_types == GgufUnknownTypes::kRefuse) {
      return unimplemented(reader_.source().name() + ": " + field + " type at byte " + std::to_string(type_offset) +
                           ": " + std::string(gguf_type_name(type)) + " (id " + std::to_string(type) +
                           ") is not supported; use a model quantised to another type, such as Q4_K_M or Q8_0");
    }
    out_.unsupported.push_back({std::move(tensor.name), type});
    return {};
  }
  tensor.dtype = *dtype;
  PAGODA_RETURN_IF_ERROR(size_tensor(tensor, dims_offset, field));
  offset_fields_.push_back(offset_field);
  out_.tensors.push_back(std::move(tensor));
  return {};
}

Status Parser::place_tensors() {
  const auto data_begin = checked_align_up(reader_.position(), alignment_);
  const uint64_t file_bytes = reader_.source().size();
  std::vector<Extent> extents;
  for (size_t i = 0; i < out_.tensors.size(); ++i) {
    GgufTensorInfo& tensor = out_.tensors[i];
    const std::string field = "tensor " + printable(tensor.name) + " offset";
    if (tensor.offset % alignment_ != 0) {
      return reader_.error(field, offset_fields_[i],
                           std::to_string(tensor.offset) + " is not a multiple of the alignment " +
                               std::to_string(alignment_));
    }
    const auto begin = data_begin ? checked_add(*data_begin, tensor.offset) : std::nullopt;
    const auto end = begin ? checked_add(*begin, tensor.num_bytes) : std::nullopt;
    if (!end || *end > file_bytes) {
      return reader_.error(field, offset_fields_[i],
                           "the tensor's " + std::to_string(tensor.num_bytes) + " bytes reach past the end of the file (" +
                               std::to_string(file_bytes) + " bytes); it is truncated or damaged");
    }
    tensor.offset = *begin;
    extents.push_back({*begin, *end, i});
  }
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin >= extents[i - 1].end) continue;
    const size_t tensor = extents[i].tensor;
    return reader_.error("tensor " + printable(out_.tensors[tensor].name) + " offset", offset_fields_[tensor],
                         "its bytes overlap those of tensor " + printable(out_.tensors[extents[i - 1].tensor].name));
  }
  return {};
}

}  // namespace

Result<ParsedGguf> parse_gguf(const ByteSource& source, const GgufFile::Options& options) {
  return Parser(source, options).run();
}

}  // namespace pagoda
