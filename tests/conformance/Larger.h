// Structs as a later version may have them.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::conformance {

/// A struct, or an element of an array, with more than this version knows.
template <typename T> struct Larger {
  T known{};
  uint64_t more = 0x5a5a5a5a5a5a5a5a;

  bool isWhole() const { return more == 0x5a5a5a5a5a5a5a5a; }
};

/// What an array's first element has of this version, for who takes the array with the size of an element; null of none.
template <typename T> T *firstOf(std::vector<Larger<T>> &array) {
  return array.empty() ? nullptr : &array.front().known;
}

} // namespace sluice::conformance
