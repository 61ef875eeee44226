// How much packed data can hold.
#pragma once

#include <cstdint>

namespace sluice::runtime {

/// The most bytes that deflate, and gzip with it, may have packed into this many.
inline int64_t mostUnpacked(int64_t packed) {
  constexpr int64_t mostGain = 1032; // bytes out of one byte
  return packed < INT64_MAX / mostGain ? packed * mostGain : INT64_MAX;
}

} // namespace sluice::runtime
