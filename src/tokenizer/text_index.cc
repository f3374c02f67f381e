#include "tokenizer/text_index.h"

#include <bit>
#include <cstring>
#include <random>

#include "base/check.h"

namespace pagoda {
namespace {

__extension__ typedef unsigned __int128 Wide;

uint64_t fold_multiply(uint64_t a, uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Two odd constants with about half of their bits set (fractional parts of sqrt 2 and sqrt 3).
constexpr uint64_t kMixA = 0x6A09E667F3BCC909ull;
constexpr uint64_t kMixB = 0xBB67AE8584CAA73Bull;

uint64_t hash_text(std::string_view text, uint64_t seed) {
  uint64_t state = seed ^ (text.size() * kMixB);
  while (text.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, text.data(), 8);
    state = fold_multiply(state ^ word, kMixA);
    text.remove_prefix(8);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, text.data(), text.size());
  return fold_multiply(fold_multiply(state ^ rest, kMixA) ^ seed, kMixB);
}

uint64_t random_seed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32 | device()) | 1;
}

// At most half full: short probe chains.
size_t slots_for(size_t capacity) { return std::bit_ceil(2 * capacity + 2); }

}  // namespace

TextIndex::TextIndex(size_t capacity)
    : seed_(random_seed()), mask_(slots_for(capacity) - 1), slots_(slots_for(capacity)) {}

size_t TextIndex::find_slot(std::string_view text, uint64_t hash) const {
  size_t i = hash & mask_;
  while (slots_[i].value >= 0 && (slots_[i].hash != static_cast<uint32_t>(hash >> 32) || slots_[i].text != text)) {
    i = (i + 1) & mask_;
  }
  return i;
}

bool TextIndex::insert(std::string_view text, int32_t value) {
  PAGODA_CHECK(value >= 0);
  const uint64_t hash = hash_text(text, seed_);
  Slot& slot = slots_[find_slot(text, hash)];
  if (slot.value >= 0) return false;
  slot = {text, static_cast<uint32_t>(hash >> 32), value};
  return true;
}

int32_t TextIndex::find(std::string_view text) const { return slots_[find_slot(text, hash_text(text, seed_))].value; }

MergeIndex::MergeIndex(size_t capacity)
    : seed_(random_seed()), mask_(slots_for(capacity) - 1), slots_(slots_for(capacity)) {}

size_t MergeIndex::find_slot(int32_t left, int32_t right) const {
  const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  size_t i = fold_multiply(key ^ seed_, kMixA) & mask_;
  while (slots_[i].left >= 0 && (slots_[i].left != left || slots_[i].right != right)) i = (i + 1) & mask_;
  return i;
}

bool MergeIndex::insert(int32_t left, int32_t right, Merge merge) {
  PAGODA_CHECK(left >= 0 && right >= 0);
  Slot& slot = slots_[find_slot(left, right)];
  if (slot.left >= 0) return false;
  slot = {left, right, merge};
  return true;
}

const Merge* MergeIndex::find(int32_t left, int32_t right) const {
  if (left < 0 || right < 0) return nullptr;
  const Slot& slot = slots_[find_slot(left, right)];
  return slot.left >= 0 ? &slot.merge : nullptr;
}

}  // namespace pagoda
