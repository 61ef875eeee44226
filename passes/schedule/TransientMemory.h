// Which bytes of the transient arenas the buffers of a call share.
#pragma once

#include "passes/analysis/HappensBefore.h"
#include <cstdint>

namespace sluice::passes {

/// What a memory slot for so many bytes takes where slots are multiples of `alignment`.
inline int64_t alignSlot(int64_t bytes, int64_t alignment) {
  return (std::max<int64_t>(bytes, 1) + alignment - 1) / alignment * alignment;
}

/// Some bytes of a device's transient arena over a call.
struct TransientBuffer {
  static constexpr unsigned kBeforeCall = ~0u;

  size_t device = 0;
  int64_t bytes = 0;                   ///< aligned; of all, if it exists more than once
  int64_t stride = 0;                  ///< of a buffer that exists more than once
  unsigned begin = kBeforeCall;        ///< the action that writes it first
  llvm::SmallVector<unsigned, 4> uses; ///< all actions that touch it
  bool outlivesCall = false;
  bool sharesBytes = true;
  int64_t offset = 0;
};

/// Gives each buffer its offset: largest first, and of equal sizes in their order, each at the lowest offset that is
/// free. Two may share bytes only if all that touch the one are done before the other is written, as `known` proves of
/// the actions. Returns the bytes of each device's arena.
llvm::SmallVector<int64_t> placeTransients(llvm::MutableArrayRef<TransientBuffer> buffers, const HappensBefore &known,
                                           size_t deviceCount);

} // namespace sluice::passes
