// The sums of one register tile of a window sum: a run of pixels of one row of outputs, or of two rows.
#pragma once

#include "backends/cpu/compiler/product/tile/Tile.h"
#include "backends/cpu/compiler/product/window/TileRuns.h"

namespace sluice::cpu {

// The valid taps [first, last) of a row along the height. Null: all of them.
struct RowTaps {
  mlir::Value first, last;
};

// One row of outputs, or two rows with the same valid taps along the width, and their weights.
struct WindowRow {
  const WindowSum::Phase &phase;
  mlir::Value image, j; // the first row
  mlir::Value column;   // first output channel
  int64_t columns = 0;  // how many
  RowTaps taps;
  mlir::Value input;   // address of the image's row under tap 0
  mlir::Value weights; // address of the group's weights
  int64_t rows = 1;    // 1 or 2
  int64_t pitch = 0;   // from the input of the first row to that of the second, in elements
  RowTaps tapsOfSecond;
};

// The sums of a tile of `run`, whose first pixel is `pixel`. Its rows are the pixels of the first row, then those of the
// second.
Sums sumOverWindow(mlir::OpBuilder &b, mlir::Location loc, const WindowSum &sum, const WindowRow &row,
                   const TileRun &run, const Tile &tile, mlir::Value pixel);

// From one panel of the weights to the next, in elements.
int64_t distanceOfPanels(const WindowSum &sum, const WindowSum::Phase &phase);

} // namespace sluice::cpu
