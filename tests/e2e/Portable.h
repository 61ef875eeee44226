// Numbers that any program can reproduce: uniform values from splitmix64, keyed by a name. The golden files use the
// same numbers, so that results can be compared element by element.
//
//   s = fnv1a64(name) + (i + 1) * 0x9E3779B97F4A7C15;   z = splitmix64's finalizer of s
//   u = (z >> 40) / 2^24;   uniform = f32(lo) + f32(hi - lo) * u;   integer below n = floor(z / 2^32) * n / 2^32
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::test {

inline uint64_t fnv1a64(const std::string &text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (unsigned char byte : text)
    hash = (hash ^ byte) * 0x100000001B3u;
  return hash;
}

inline uint64_t portableBits(uint64_t key, uint64_t index) {
  uint64_t z = key + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

inline std::vector<float> portableUniform(const std::string &name, size_t count, double lo = 0, double hi = 1) {
  uint64_t key = fnv1a64(name);
  std::vector<float> values(count);
  float low = float(lo), width = float(hi - lo);
  for (size_t i = 0; i < count; ++i) {
    float product = width * (float(portableBits(key, i) >> 40) / 16777216.0f);
    values[i] = low + product;
  }
  return values;
}

inline std::vector<int64_t> portableIntegers(const std::string &name, size_t count, uint64_t n) {
  uint64_t key = fnv1a64(name);
  std::vector<int64_t> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = int64_t(((portableBits(key, i) >> 32) * n) >> 32);
  return values;
}

} // namespace sluice::test
