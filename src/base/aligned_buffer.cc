#include "base/aligned_buffer.h"

#include <sys/mman.h>

#include <utility>

namespace pagoda {

namespace {
// A 2 MiB page saves TLB misses only for buffers of several of them.
constexpr size_t kHugePageBytes = size_t{2} << 20;
}  // namespace

Result<AlignedBuffer> AlignedBuffer::create(size_t size) {
  AlignedBuffer buffer;
  if (size == 0) return buffer;
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    return resource_exhausted("the system refused " + std::to_string(size) + " bytes of memory");
  }
  if (size >= 4 * kHugePageBytes) madvise(p, size, MADV_HUGEPAGE);  // advice: failure only costs speed
  buffer.data_ = static_cast<uint8_t*>(p);
  buffer.size_ = size;
  return buffer;
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace pagoda
