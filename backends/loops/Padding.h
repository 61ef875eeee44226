// Clears the padding of tiled layouts, whose memory may hold other values.
#pragma once

#include "backends/loops/LoopNest.h"
#include "ir/Dialect.h"
#include "ir/Layout.h"

namespace sluice::loops {

/// Which tiles: adjacent ones, whose padding nests over the elements do not write (NestTasks.h), separate ones, whose
/// padding they write as zeros, or all.
enum class PaddingOf { JoinedTiles, ApartTiles, AllTiles };

/// The in-tile dimensions of the type's tilings whose last tile is not full.
llvm::SmallVector<ir::PhysicalDim> paddedDims(mlir::RankedTensorType type, PaddingOf which);

/// Emits nests that clear the padding of the results, after those of a kernel, whose buffers are its operands, then its
/// results. Fails with a diagnostic.
mlir::LogicalResult writePadding(ir::KernelOp kernel, llvm::StringRef name, PaddingOf which, NestWriter &writer);

} // namespace sluice::loops
