#pragma once
// CacheKey: what else than its tokens decides a block's content. Parts are typed and length-prefixed, so that no two
// lists of parts share a key, whatever bytes they hold.

#include <cstdint>
#include <string>
#include <string_view>

namespace pagoda {

enum class CacheKeyPart : uint8_t { kNamespace = 1, kAdapter = 2, kModelRevision = 3 };

class CacheKey {
 public:
  void add(CacheKeyPart part, std::string_view value) {
    key_.push_back(static_cast<char>(part));
    for (int shift = 0; shift < 64; shift += 8) key_.push_back(static_cast<char>(uint64_t{value.size()} >> shift));
    key_.append(value);
  }
  const std::string& bytes() const { return key_; }

 private:
  std::string key_;
};

}  // namespace pagoda
