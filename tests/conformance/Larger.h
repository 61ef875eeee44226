// Structs as a later version may have them.
#pragma once

#include <cstdint>

namespace sluice::conformance {

/// A struct, or an element of an array, with more than this version knows.
template <typename T> struct Larger {
  T known{};
  uint64_t more = 0x5a5a5a5a5a5a5a5a;

  bool isWhole() const { return more == 0x5a5a5a5a5a5a5a5a; }
};

} // namespace sluice::conformance
