// A loop on the cores that the process may use. The threads of MLIR and LLVM end the process where one cannot be had.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstddef>

namespace sluice::cpu {

/// For each number below `count`: `prepare` in order on the calling thread, and then `body` on any of `threads` threads
/// with the calling one (0: as many as there are cores), or of those that can be had. False if `prepare` was, which is
/// then the last. What one of them throws is thrown here, and a crash is one of this thread's, as if there were no other;
/// both end the loop.
bool parallelFor(size_t count, unsigned threads, llvm::function_ref<bool(size_t)> prepare,
                 llvm::function_ref<void(size_t)> body);

} // namespace sluice::cpu
