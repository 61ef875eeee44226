// The order of every sum of a weight gradient: through the images, their rows of pixels, and the pixels of a row.
//
// Which taps are inside the image depends on the position, so rows of pixels are grouped in bands and pixels in runs.
// Their bounds depend on the tile that is summed. The order in which one element of dW accumulates its pixels does not.
#pragma once

#include "backends/cpu/compiler/product/Contraction.h"
#include "backends/cpu/compiler/product/tile/Tile.h"

namespace sluice::cpu {

// Pixels [begin, end) along one axis for which the same taps are inside the image.
struct PixelSegment {
  int64_t begin, end;
  llvm::SmallVector<bool> validTaps;
};

// Splits an axis by which of `taps` are inside.
llvm::SmallVector<PixelSegment> pixelSegments(const Convolution::Axis &axis, llvm::ArrayRef<int64_t> taps);

// Adds the terms of a pixel. Receives the address of dY at the pixel, and the address of x under the window's first tap
// plus the tile's corner.
using PixelStep = std::function<void(mlir::OpBuilder &, mlir::Value xPixel, mlir::Value dYPixel, Sums &)>;

// The pixels [begin, end) of a row.
struct PixelRun {
  mlir::Value begin, end;
  PixelStep step;
};

// The rows [begin, end) of an image's pixels; all have the same runs, from left to right.
struct PixelBand {
  mlir::Value begin, end;
  llvm::SmallVector<PixelRun> runs;
};

// The pixels that all tiles accumulate before the next block: some images, or some rows of pixels of one image.
struct PixelBlock {
  mlir::Value image0, image1;
  mlir::Value row0, row1; // null: all
};

// Adds the bands' pixels of the block's images. `x` is the address of the element under the window's first tap that the
// tile's first row reads at the first pixel of all, and `dY` that of its first column.
Sums overPixels(mlir::OpBuilder &b, mlir::Location loc, const Convolution &op, const PixelBlock &block,
                llvm::ArrayRef<PixelBand> bands, mlir::Value x, mlir::Value dY, Sums sums);

} // namespace sluice::cpu
