#pragma once
// A GGUF model as validated data: metadata, tensor directory, where each tensor's bytes lie. Version 2 and 3, little
// endian, single file or split into shards (any shard, or the folder that holds them, opens the whole model).
//
// Everything is checked before GgufFile exists: counts, string and array lengths, dimensions, type ids, alignment,
// offsets, overlap, and that every tensor's byte range lies inside its file. Opening allocates in proportion to the
// bytes really present, never to a declared count.
// Specification: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
//
// Thread rule: immutable after open; read_tensor may be called from many threads.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "pagoda/status.h"
#include "tensor/dtype.h"

namespace pagoda {

enum class GgufType : uint32_t {
  kUint8 = 0, kInt8, kUint16, kInt16, kUint32, kInt32, kFloat32, kBool, kString, kArray, kUint64, kInt64, kFloat64,
};
std::string_view gguf_value_type_name(GgufType type);

/// Strings of an array share one arena, so that a 256k-entry vocabulary is two allocations.
class GgufStringArray {
 public:
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }
  void push_back(std::string_view s) {
    bytes_.append(s);
    ends_.push_back(bytes_.size());
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

struct GgufValue;
/// Arrays keep their element type. Nested arrays are held as `values`.
struct GgufArray {
  GgufType element_type = GgufType::kUint8;
  std::variant<std::vector<uint64_t>, std::vector<int64_t>, std::vector<double>, std::vector<float>, std::vector<uint8_t>,
               GgufStringArray, std::vector<GgufArray>>
      values;  // unsigned ints, signed ints, f64, f32, bools, strings, arrays
  size_t size() const;
};

struct GgufValue {
  GgufType type = GgufType::kUint8;
  std::variant<uint64_t, int64_t, double, float, bool, std::string, GgufArray> data;
};

struct GgufTensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<uint64_t> dims;  ///< GGUF order: dims[0] is the fastest (K); 1 to 4 entries
  uint32_t shard = 0;          ///< index of the file that holds the bytes
  uint64_t offset = 0;         ///< absolute byte offset in that file
  uint64_t num_bytes = 0;
  uint64_t num_elements() const;
};

/// Caps on what a file may declare; the defaults are also what security tests use.
struct GgufLimits {
  uint64_t max_tensors = 65536;
  uint64_t max_metadata = 65536;
  uint64_t max_key_bytes = 64u << 10;
  uint64_t max_string_bytes = 64u << 20;
  uint64_t max_array_elements = 16u << 20;
  uint64_t max_shards = 1024;
};

/// Whether tensors of a type that Pagoda cannot compute with are an error (loading) or listed (inspection).
enum class GgufUnknownTypes { kRefuse, kList };

struct GgufUnsupportedTensor {
  std::string name;
  uint32_t gguf_type_id = 0;
};

class GgufFile {
 public:
  struct Options {
    GgufLimits limits;
    GgufUnknownTypes unknown_types = GgufUnknownTypes::kRefuse;
  };

  /// `path` is a file, any shard of a split model, or a folder holding exactly one model.
  /// kNotFound: no such file. kDataLoss: not a valid GGUF; the text names file, field and byte offset.
  /// kUnimplemented: valid but beyond Pagoda (version 1, big endian, a tensor type by name).
  static Result<GgufFile> open(const std::string& path, const Options& options);
  static Result<GgufFile> open(const std::string& path) { return open(path, Options()); }
  /// The same from memory (tests, fuzzing); `bytes` must outlive the result.
  static Result<GgufFile> parse(std::span<const uint8_t> bytes, const Options& options);

  GgufFile(GgufFile&&) noexcept;
  GgufFile& operator=(GgufFile&&) noexcept;
  ~GgufFile();

  uint32_t version() const;
  const std::string& path() const;          ///< first shard's path, "<memory>" for parse()
  uint64_t total_file_bytes() const;        ///< all shards

  /// Metadata in file order.
  std::span<const std::pair<std::string, GgufValue>> metadata() const;
  const GgufValue* find(std::string_view key) const;
  /// Typed look-ups. nullopt/null when absent; kDataLoss naming the key when present with an unusable type.
  Result<std::optional<uint64_t>> get_uint(std::string_view key) const;   ///< any integer type, not negative
  Result<std::optional<double>> get_float(std::string_view key) const;    ///< any float or integer type
  Result<std::optional<bool>> get_bool(std::string_view key) const;
  Result<const std::string*> get_string(std::string_view key) const;
  Result<const GgufArray*> get_array(std::string_view key) const;

  /// Tensors in file order (shards one after the other).
  std::span<const GgufTensorInfo> tensors() const;
  const GgufTensorInfo* find_tensor(std::string_view name) const;
  /// Only with GgufUnknownTypes::kList.
  std::span<const GgufUnsupportedTensor> unsupported_tensors() const;

  /// Copies bytes [begin, begin + dst.size()) of the tensor. kInternal on an I/O error, kDataLoss when the file
  /// became shorter since it was opened.
  Status read_tensor(const GgufTensorInfo& tensor, uint64_t begin, std::span<uint8_t> dst) const;

 private:
  struct Impl;
  explicit GgufFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda
