// Zeros in what pads the tiles of a layout, which hold whatever lay there before.
#pragma once

#include "backends/loops/LoopNest.h"
#include "ir/Dialect.h"

namespace sluice::loops {

/// Which padding: of tiles that lie one behind the other, which nests over the elements do not write (NestTasks.h); of those that
/// lie apart, or of all.
enum class PaddingOf { JoinedTiles, ApartTiles, AllTiles };

bool hasPadding(mlir::RankedTensorType type, PaddingOf which);

/// Asks for nests that clear that of the results behind the nests of a kernel, whose buffers are its operands, then its results. Fails with a
/// diagnostic.
mlir::LogicalResult writePadding(ir::KernelOp kernel, llvm::StringRef name, PaddingOf which, NestWriter &writer);

} // namespace sluice::loops
