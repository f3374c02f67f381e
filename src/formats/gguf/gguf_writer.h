#pragma once
// Writes GGUF version 3 files: metadata in the order given, tensor data aligned. Used by tests, fixtures and, later,
// by the commands that quantise. The file appears under its name only when complete (temporary name, fsync, rename).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/gguf/gguf_file.h"

namespace pagoda {

class GgufWriter {
 public:
  explicit GgufWriter(uint32_t alignment = 32) : alignment_(alignment) {}

  void add(std::string key, GgufValue value);
  void add_string(std::string key, std::string value);
  void add_uint32(std::string key, uint32_t value);
  void add_float32(std::string key, float value);
  void add_bool(std::string key, bool value);
  /// `data` is copied; its size must be what dtype and dims say (checked on write).
  void add_tensor(std::string name, DType dtype, std::vector<uint64_t> dims, std::vector<uint8_t> data);

  /// The whole file in memory.
  Result<std::vector<uint8_t>> to_bytes() const;
  Status write(const std::string& path) const;

 private:
  struct Tensor {
    std::string name;
    DType dtype;
    std::vector<uint64_t> dims;
    std::vector<uint8_t> data;
  };
  uint32_t alignment_;
  std::vector<std::pair<std::string, GgufValue>> metadata_;
  std::vector<Tensor> tensors_;
};

}  // namespace pagoda
