// A parallel loop on the cores that the process may use. The thread pools of MLIR and LLVM are rejected: they end the
// process if a thread cannot be created.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstddef>

namespace sluice::cpu {

/// For each number below `count`: `prepare` runs in order on the calling thread, then `body` on any of `threads`
/// threads, which include the calling one. 0: one thread per core. If fewer threads can be created, the loop uses
/// those. Returns false if `prepare` did, which also ends the loop. An exception of one thread is rethrown here. A
/// crash of one thread is handled like a crash of the calling thread. Both end the loop.
bool parallelFor(size_t count, unsigned threads, llvm::function_ref<bool(size_t)> prepare,
                 llvm::function_ref<void(size_t)> body);

} // namespace sluice::cpu
