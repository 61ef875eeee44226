// A row of outputs of a window sum, cut into tiles of pixels. Along the width, the valid taps of each pixel are known when
// the code is generated, and tiles with the same valid taps share one loop. Along the height, they are the bounds of a
// loop.
#pragma once

#include "backends/cpu/compiler/product/window/WindowSum.h"

#include <utility>

namespace sluice::cpu {

// `count` tiles of `size` pixels, one after the other, in which pixel r has the valid taps [first[r], last[r]).
struct TileRun {
  int64_t start, size, count;
  llvm::SmallVector<int64_t> first, last;

  bool all(int64_t taps) const;
  int64_t pixelsWith(int64_t tap) const; // in one tile
};

// The valid taps [first, last) of an output.
std::pair<int64_t, int64_t> validTaps(const WindowAxis &axis, int64_t output);

// Cuts the outputs along an axis into tiles of at most `rows` outputs, as even as they can be.
llvm::SmallVector<TileRun> tileRuns(const WindowAxis &axis, int64_t rows);

// The tiles of a run, one after the other: `emit` gets the first output of each.
void forEachTile(mlir::OpBuilder &b, mlir::Location loc, const TileRun &run,
                 llvm::function_ref<void(mlir::OpBuilder &, mlir::Value output)> emit);

// The place of output `j` under tap 0, in the input.
mlir::Value inputPlace(mlir::OpBuilder &b, mlir::Location loc, const WindowAxis &axis, mlir::Value j);

// The valid taps [first, last) of the output at this place. Null if all taps of all outputs are valid.
std::pair<mlir::Value, mlir::Value> validTapsAt(mlir::OpBuilder &b, mlir::Location loc, const WindowAxis &axis,
                                                mlir::Value place);

} // namespace sluice::cpu
