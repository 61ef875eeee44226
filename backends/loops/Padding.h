// Zeros in what pads the tiles of a layout, which hold whatever lay there before.
#pragma once

#include "backends/loops/LoopNest.h"
#include "ir/Dialect.h"
#include "ir/Layout.h"

namespace sluice::loops {

/// Which padding: of tiles that lie one behind the other, which nests over the elements do not write (NestTasks.h); of those that
/// lie apart, or of all.
enum class PaddingOf { JoinedTiles, ApartTiles, AllTiles };

/// The places in tiles of which the last one is not full.
llvm::SmallVector<ir::PhysicalDim> paddedDims(mlir::RankedTensorType type, PaddingOf which);

/// Asks for nests that clear the padding of the results, behind those of a kernel, whose buffers are its operands, then its
/// results. Fails with a diagnostic.
mlir::LogicalResult writePadding(ir::KernelOp kernel, llvm::StringRef name, PaddingOf which, NestWriter &writer);

} // namespace sluice::loops
