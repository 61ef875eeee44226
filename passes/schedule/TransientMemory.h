// Shares the bytes of the transient arenas among the buffers of a call.
#pragma once

#include "passes/analysis/HappensBefore.h"
#include <cstdint>

namespace sluice::passes {

/// The size of a memory slot for `bytes`, where slots are multiples of `alignment`.
inline int64_t alignSlot(int64_t bytes, int64_t alignment) {
  return (std::max<int64_t>(bytes, 1) + alignment - 1) / alignment * alignment;
}

/// A range of bytes of a device's transient arena over a call.
struct TransientBuffer {
  static constexpr unsigned kBeforeCall = ~0u;

  size_t device = 0;
  int64_t bytes = 0;                   ///< aligned; total, if it has several instances
  int64_t stride = 0;                  ///< between instances
  unsigned begin = kBeforeCall;        ///< the action that first writes it
  llvm::SmallVector<unsigned, 4> uses; ///< all actions that access it
  bool outlivesCall = false;
  bool sharesBytes = true;
  bool isPassed = false; ///< in memory of the caller (functional models)
  int64_t offset = 0;    ///< the result of placeTransients
};

/// Gives each buffer its offset: the largest first, equal sizes in order, each at the lowest free offset. Two buffers
/// may share bytes only if `known` proves that all accesses of one are done before the other is written. Returns the
/// bytes of each device's arena.
llvm::SmallVector<int64_t> placeTransients(llvm::MutableArrayRef<TransientBuffer> buffers, const HappensBefore &known,
                                           size_t deviceCount);

} // namespace sluice::passes
