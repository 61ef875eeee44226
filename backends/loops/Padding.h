// Clears the padding of tiled layouts, whose memory may hold other values.
#pragma once

#include "backends/loops/LoopNest.h"
#include "ir/Dialect.h"
#include "ir/Layout.h"

namespace sluice::loops {

/// Which padding: of adjacent tiles, which nests over the elements do not write (NestTasks.h); of separate tiles, or of
/// all.
enum class PaddingOf { JoinedTiles, ApartTiles, AllTiles };

/// The padding indices of tiles, if the last one is not full.
llvm::SmallVector<ir::PhysicalDim> paddedDims(mlir::RankedTensorType type, PaddingOf which);

/// Emits nests that clear the padding of the results, after those of a kernel, whose buffers are its operands, then its
/// results. Fails with a diagnostic.
mlir::LogicalResult writePadding(ir::KernelOp kernel, llvm::StringRef name, PaddingOf which, NestWriter &writer);

} // namespace sluice::loops
