#pragma once
// Counter-based random numbers: a draw is a pure function of its key, so it depends on no neighbour and no history.
// Mixing follows SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014), one round per
// key word.

#include <cstdint>

namespace pagoda {

/// What a draw is for; different purposes at one position are independent.
enum class RandomPurpose : uint64_t { kSample = 1 };

struct RandomKey {
  uint64_t seed = 0;
  uint64_t choice = 0;    ///< Index of the choice among the n of one request.
  uint64_t position = 0;  ///< Absolute position of the token being drawn.
  RandomPurpose purpose = RandomPurpose::kSample;
};

inline uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

inline uint64_t random_bits(const RandomKey& key) {
  uint64_t h = mix64(key.seed);
  h = mix64(h ^ key.choice);
  h = mix64(h ^ key.position);
  return mix64(h ^ static_cast<uint64_t>(key.purpose));
}

/// Uniform in [0, 1), a multiple of 2^-53.
inline double random_uniform(const RandomKey& key) {
  return static_cast<double>(random_bits(key) >> 11) * 0x1.0p-53;
}

}  // namespace pagoda
