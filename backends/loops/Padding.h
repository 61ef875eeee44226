// Zeros in what pads the tiles of a layout, which hold whatever lay there before.
#pragma once

#include "backends/loops/LoopNest.h"
#include "ir/Dialect.h"

namespace sluice::loops {

/// Which padding of results: what nests over them do not write, as those tiles lie one behind the other (NestTasks.h); or all.
enum class PaddingOf { JoinedTiles, AllTiles };

/// Asks for nests that clear it behind the nests of a kernel, whose buffers are its operands, then its results. Fails with a
/// diagnostic.
mlir::LogicalResult writePadding(ir::KernelOp kernel, llvm::StringRef name, PaddingOf which, NestWriter &writer);

} // namespace sluice::loops
