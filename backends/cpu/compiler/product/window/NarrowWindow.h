// The last few output channels of a window sum, if they would fill only a small part of a vector; all channels if there
// are few. Lanes go along the terms of each sum, a row of taps and its channels, instead of along the output channels.
#pragma once

#include "backends/cpu/compiler/product/window/WindowSum.h"

namespace sluice::cpu {

// The number of last output channels for which this is cheaper; 0: none.
int64_t chooseNarrowChannels(const WindowSum &sum, const Target &target);

// One row of outputs for those channels.
struct NarrowRow {
  const WindowSum::Phase &phase;
  mlir::Value image, j;   // the row
  mlir::Value tap0, tap1; // valid taps along the height; null: all of them
  mlir::Value input;      // address of the image's row under tap 0
};

void emitNarrowRow(StageFunction &stage, mlir::OpBuilder &b, mlir::Location loc, const WindowSum &sum,
                   const NarrowRow &row, const Target &target);

} // namespace sluice::cpu
