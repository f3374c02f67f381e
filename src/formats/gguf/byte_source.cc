#include "formats/gguf/byte_source.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace pagoda {
namespace {

constexpr uint64_t kWindowBytes = 256 << 10;

class FileSource final : public ByteSource {
 public:
  FileSource(std::string path, int fd, uint64_t size) : path_(std::move(path)), fd_(fd), size_(size) {}
  ~FileSource() override { ::close(fd_); }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  const std::string& name() const override { return path_; }
  uint64_t size() const override { return size_; }
  Status read_at(uint64_t offset, std::span<uint8_t> dst) const override {
    while (!dst.empty()) {
      const ssize_t got = ::pread(fd_, dst.data(), dst.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        return internal_error(path_ + ": reading at byte " + std::to_string(offset) + ": " + std::strerror(errno));
      }
      if (got == 0) {
        return data_loss(path_ + ": ends at byte " + std::to_string(offset) + ", but had " + std::to_string(size_) +
                         " bytes when it was opened; do not change a model file that is in use");
      }
      dst = dst.subspan(static_cast<size_t>(got));
      offset += static_cast<uint64_t>(got);
    }
    return {};
  }

 private:
  std::string path_;
  int fd_;
  uint64_t size_;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  const std::string& name() const override { return name_; }
  uint64_t size() const override { return bytes_.size(); }
  Status read_at(uint64_t offset, std::span<uint8_t> dst) const override {
    if (offset > bytes_.size() || dst.size() > bytes_.size() - offset) {
      return data_loss(name_ + ": ends before byte " + std::to_string(offset) + " + " + std::to_string(dst.size()));
    }
    if (!dst.empty()) std::memcpy(dst.data(), bytes_.data() + offset, dst.size());
    return {};
  }

 private:
  std::string name_ = "<memory>";
  std::span<const uint8_t> bytes_;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_file_source(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const std::string text = path + ": cannot open: " + std::strerror(errno);
    return errno == ENOENT || errno == ENOTDIR ? not_found(text) : internal_error(text);
  }
  struct stat info;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return invalid_argument(path + ": not a regular file");
  }
  return std::unique_ptr<ByteSource>(std::make_unique<FileSource>(path, fd, static_cast<uint64_t>(info.st_size)));
}

std::unique_ptr<ByteSource> make_memory_source(std::span<const uint8_t> bytes) {
  return std::make_unique<MemorySource>(bytes);
}

Status BoundedReader::read_bytes(std::span<uint8_t> dst, std::string_view field) {
  if (dst.size() > remaining()) {
    return error(field, position_,
                 "needs " + std::to_string(dst.size()) + " bytes but the file ends after " +
                     std::to_string(remaining()) + " more; it is truncated or damaged");
  }
  while (!dst.empty()) {
    const uint64_t window_end = window_begin_ + window_.size();
    if (position_ >= window_end) {
      window_.resize(std::min(kWindowBytes, remaining()));
      window_begin_ = position_;
      PAGODA_RETURN_IF_ERROR(source_.read_at(position_, window_));
      continue;
    }
    const size_t count = std::min<uint64_t>(dst.size(), window_end - position_);
    std::memcpy(dst.data(), window_.data() + (position_ - window_begin_), count);
    dst = dst.subspan(count);
    position_ += count;
  }
  return {};
}

Status BoundedReader::error(std::string_view field, uint64_t offset, std::string_view what) const {
  std::string text = source_.name() + ": ";
  text.append(field).append(" at byte ").append(std::to_string(offset)).append(": ").append(what);
  return data_loss(std::move(text));
}

}  // namespace pagoda
