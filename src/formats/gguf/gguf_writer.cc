#include "formats/gguf/gguf_writer.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <filesystem>
#include <type_traits>

#include "base/checked_math.h"

namespace pagoda {
namespace {

template <typename T>
void put(std::vector<uint8_t>& out, T value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

void put_string(std::vector<uint8_t>& out, std::string_view text) {
  put<uint64_t>(out, text.size());
  out.insert(out.end(), text.begin(), text.end());
}

Status bad_value(GgufType type, std::string_view why) {
  return invalid_argument("GGUF value of type " + std::string(gguf_value_type_name(type)) + ": " + std::string(why));
}

template <typename T>
Status put_integer(std::vector<uint8_t>& out, GgufType type, T value) {
  const auto narrow = [&](auto target) -> Status {
    using Target = decltype(target);
    if (static_cast<T>(static_cast<Target>(value)) != value) return bad_value(type, "out of range");
    put(out, static_cast<Target>(value));
    return {};
  };
  if constexpr (std::is_signed_v<T>) {
    if (type == GgufType::kInt8) return narrow(int8_t{});
    if (type == GgufType::kInt16) return narrow(int16_t{});
    if (type == GgufType::kInt32) return narrow(int32_t{});
    if (type == GgufType::kInt64) return narrow(int64_t{});
  } else {
    if (type == GgufType::kUint8) return narrow(uint8_t{});
    if (type == GgufType::kUint16) return narrow(uint16_t{});
    if (type == GgufType::kUint32) return narrow(uint32_t{});
    if (type == GgufType::kUint64) return narrow(uint64_t{});
  }
  return bad_value(type, "holds data of another type");
}

Status put_array(std::vector<uint8_t>& out, const GgufArray& array) {
  const GgufType type = array.element_type;
  put(out, static_cast<uint32_t>(type));
  put<uint64_t>(out, array.size());
  return std::visit(
      [&](const auto& values) -> Status {
        using Values = std::decay_t<decltype(values)>;
        const auto each = [&](GgufType wanted, auto&& put_one) -> Status {
          if (type != wanted) return bad_value(type, "array holds data of another type");
          for (size_t i = 0; i < values.size(); ++i) PAGODA_RETURN_IF_ERROR(put_one(values[i]));
          return {};
        };
        if constexpr (std::is_same_v<Values, std::vector<uint64_t>> || std::is_same_v<Values, std::vector<int64_t>>) {
          return each(type, [&](auto v) { return put_integer(out, type, v); });
        } else if constexpr (std::is_same_v<Values, std::vector<double>>) {
          return each(GgufType::kFloat64, [&](double v) { return put(out, v), Status(); });
        } else if constexpr (std::is_same_v<Values, std::vector<float>>) {
          return each(GgufType::kFloat32, [&](float v) { return put(out, v), Status(); });
        } else if constexpr (std::is_same_v<Values, std::vector<uint8_t>>) {
          return each(GgufType::kBool, [&](uint8_t v) { return put<uint8_t>(out, v != 0), Status(); });
        } else if constexpr (std::is_same_v<Values, GgufStringArray>) {
          return each(GgufType::kString, [&](std::string_view v) { return put_string(out, v), Status(); });
        } else {
          return each(GgufType::kArray, [&](const GgufArray& v) { return put_array(out, v); });
        }
      },
      array.values);
}

Status put_value(std::vector<uint8_t>& out, const GgufValue& value) {
  put(out, static_cast<uint32_t>(value.type));
  const auto only = [&](GgufType wanted) {
    return value.type == wanted ? Status() : bad_value(value.type, "holds data of another type");
  };
  return std::visit(
      [&](const auto& data) -> Status {
        using Data = std::decay_t<decltype(data)>;
        if constexpr (std::is_same_v<Data, uint64_t> || std::is_same_v<Data, int64_t>) {
          return put_integer(out, value.type, data);
        } else if constexpr (std::is_same_v<Data, double>) {
          put(out, data);
          return only(GgufType::kFloat64);
        } else if constexpr (std::is_same_v<Data, float>) {
          put(out, data);
          return only(GgufType::kFloat32);
        } else if constexpr (std::is_same_v<Data, bool>) {
          put<uint8_t>(out, data ? 1 : 0);
          return only(GgufType::kBool);
        } else if constexpr (std::is_same_v<Data, std::string>) {
          put_string(out, data);
          return only(GgufType::kString);
        } else {
          PAGODA_RETURN_IF_ERROR(only(GgufType::kArray));
          return put_array(out, data);
        }
      },
      value.data);
}

void pad(std::vector<uint8_t>& out, uint64_t alignment) {
  while (out.size() % alignment != 0) out.push_back(0);
}

Status check_tensor(const std::string& name, DType dtype, const std::vector<uint64_t>& dims, uint64_t data_bytes) {
  const DTypeTraits& row = traits(dtype);
  if (dims.empty() || dims.size() > 4 || dims[0] % row.block_elements != 0) {
    return invalid_argument("tensor '" + name + "': needs 1 to 4 dimensions, the first a multiple of " +
                            std::to_string(row.block_elements));
  }
  std::optional<uint64_t> bytes = checked_mul(dims[0] / row.block_elements, row.block_bytes);
  for (size_t i = 1; i < dims.size() && bytes; ++i) bytes = checked_mul(*bytes, dims[i]);
  if (!bytes || *bytes == 0 || *bytes != data_bytes) {
    return invalid_argument("tensor '" + name + "': the data has " + std::to_string(data_bytes) +
                            " bytes, which is not what its type and dimensions say");
  }
  return {};
}

Status write_all(int fd, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return internal_error(std::strerror(errno));
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
  return ::fsync(fd) == 0 ? Status() : internal_error(std::strerror(errno));
}

}  // namespace

void GgufWriter::add(std::string key, GgufValue value) { metadata_.emplace_back(std::move(key), std::move(value)); }
void GgufWriter::add_string(std::string key, std::string value) {
  add(std::move(key), {GgufType::kString, std::move(value)});
}
void GgufWriter::add_uint32(std::string key, uint32_t value) {
  add(std::move(key), {GgufType::kUint32, static_cast<uint64_t>(value)});
}
void GgufWriter::add_float32(std::string key, float value) { add(std::move(key), {GgufType::kFloat32, value}); }
void GgufWriter::add_bool(std::string key, bool value) { add(std::move(key), {GgufType::kBool, value}); }
void GgufWriter::add_tensor(std::string name, DType dtype, std::vector<uint64_t> dims, std::vector<uint8_t> data) {
  tensors_.push_back({std::move(name), dtype, std::move(dims), std::move(data)});
}

Result<std::vector<uint8_t>> GgufWriter::to_bytes() const {
  if (!std::has_single_bit(alignment_) || alignment_ < 8 || alignment_ > 65536) {
    return invalid_argument("GGUF alignment " + std::to_string(alignment_) + " is not a power of two from 8 to 65536");
  }
  // Readers learn an alignment other than 32 only from this key.
  const bool add_alignment = alignment_ != 32;
  std::vector<uint8_t> out = {'G', 'G', 'U', 'F'};
  put<uint32_t>(out, 3);
  put<uint64_t>(out, tensors_.size());
  put<uint64_t>(out, metadata_.size() + (add_alignment ? 1 : 0));
  for (const auto& [key, value] : metadata_) {
    if (key == "general.alignment") return invalid_argument("pass general.alignment to GgufWriter's constructor");
    put_string(out, key);
    PAGODA_RETURN_IF_ERROR(put_value(out, value).with_context("metadata '" + key + "'"));
  }
  if (add_alignment) {
    put_string(out, "general.alignment");
    PAGODA_RETURN_IF_ERROR(put_value(out, {GgufType::kUint32, static_cast<uint64_t>(alignment_)}));
  }
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    PAGODA_RETURN_IF_ERROR(check_tensor(tensor.name, tensor.dtype, tensor.dims, tensor.data.size()));
    put_string(out, tensor.name);
    put(out, static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t dim : tensor.dims) put(out, dim);
    put(out, traits(tensor.dtype).gguf_id);
    put(out, offset);
    offset = round_up<uint64_t>(offset + tensor.data.size(), alignment_);
  }
  for (const Tensor& tensor : tensors_) {
    pad(out, alignment_);
    out.insert(out.end(), tensor.data.begin(), tensor.data.end());
  }
  pad(out, alignment_);
  return out;
}

Status GgufWriter::write(const std::string& path) const {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, to_bytes());
  std::string temporary = path + ".tmp-XXXXXX";
  const int fd = ::mkstemp(temporary.data());
  if (fd < 0) return internal_error(path + ": cannot create a temporary file beside it: " + std::strerror(errno));
  Status status = write_all(fd, bytes);
  if (status.ok() && ::fchmod(fd, 0644) != 0) status = internal_error(std::strerror(errno));
  if (::close(fd) != 0 && status.ok()) status = internal_error(std::strerror(errno));
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) status = internal_error(std::strerror(errno));
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status.with_context(path + ": writing");
  }
  // The rename itself must reach the disk.
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const int folder = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return internal_error(path + ": cannot open its folder: " + std::strerror(errno));
  const int synced = ::fsync(folder);
  ::close(folder);
  return synced == 0 ? Status() : internal_error(path + ": cannot sync its folder");
}

}  // namespace pagoda
