// A parallel loop on the cores that the process may use. The thread pools of MLIR and LLVM are rejected: they end the
// process if a thread cannot be created.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstddef>

namespace sluice::cpu {

/// For each number below `count`: `prepare` runs in order on the calling thread, then `body` on any of `threads`
/// threads, which include the calling one. 0: one thread per core. If fewer threads can be created, the loop uses
/// fewer. Three events end the loop early. If `prepare` returns false, the loop returns false. An exception of any
/// thread is rethrown in the calling thread. A crash of any thread becomes a crash of the calling thread.
bool parallelFor(size_t count, unsigned threads, llvm::function_ref<bool(size_t)> prepare,
                 llvm::function_ref<void(size_t)> body);

} // namespace sluice::cpu
