#pragma once
// AlignedBuffer: owning, move-only bytes aligned for any vector load; large ones ask for huge pages.

#include <cstddef>
#include <cstdint>

#include "pagoda/status.h"

namespace pagoda {

class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  AlignedBuffer() = default;
  /// `size` zeroed bytes (0 is allowed). kResourceExhausted when the system has no memory for it. Pages become
  /// resident on first write.
  static Result<AlignedBuffer> create(size_t size);

  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer();

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  template <typename T>
  T* as() { return reinterpret_cast<T*>(data_); }
  template <typename T>
  const T* as() const { return reinterpret_cast<const T*>(data_); }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace pagoda
