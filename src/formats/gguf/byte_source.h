#pragma once
// Where a parser's bytes come from: a file read with pread (never mapped, so a file that shrinks is an error status and
// not a signal) or memory. BoundedReader walks one from its start and cannot pass its end.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pagoda/status.h"

namespace pagoda {

/// Immutable; read_at may be called from many threads.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual const std::string& name() const = 0;  ///< for error texts
  virtual uint64_t size() const = 0;            ///< as it was when opened
  /// Fills `dst`. kDataLoss when the bytes are not there (any more), kInternal on an I/O error.
  virtual Status read_at(uint64_t offset, std::span<uint8_t> dst) const = 0;
};

/// kNotFound when there is no such file, kInvalidArgument when it is not a regular file.
Result<std::unique_ptr<ByteSource>> open_file_source(const std::string& path);
/// `bytes` must outlive the source.
std::unique_ptr<ByteSource> make_memory_source(std::span<const uint8_t> bytes);

/// Sequential little-endian reads through a window. One thread.
class BoundedReader {
 public:
  explicit BoundedReader(const ByteSource& source) : source_(source) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return source_.size() - position_; }
  const ByteSource& source() const { return source_; }

  /// Copies the next dst.size() bytes; `field` names them in the error.
  Status read_bytes(std::span<uint8_t> dst, std::string_view field);
  template <typename T>
  Status read(T& value, std::string_view field) {
    return read_bytes({reinterpret_cast<uint8_t*>(&value), sizeof(T)}, field);
  }
  /// kDataLoss "FILE: FIELD at byte OFFSET: WHAT".
  Status error(std::string_view field, uint64_t offset, std::string_view what) const;

 private:
  const ByteSource& source_;
  uint64_t position_ = 0;
  uint64_t window_begin_ = 0;
  std::vector<uint8_t> window_;
};

}  // namespace pagoda
