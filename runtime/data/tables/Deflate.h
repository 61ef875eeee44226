// Upper bound of the unpacked size of compressed data.
#pragma once

#include <cstdint>

namespace sluice::runtime {

/// Upper bound of the bytes that deflate or gzip unpack from `packed` bytes.
inline int64_t mostUnpacked(int64_t packed) {
  constexpr int64_t mostGain = 1032; // unpacked bytes per packed byte, the limit of deflate's format
  return packed < INT64_MAX / mostGain ? packed * mostGain : INT64_MAX;
}

} // namespace sluice::runtime
