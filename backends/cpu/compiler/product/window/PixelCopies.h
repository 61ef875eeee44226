// Copies of the pixels that the tiles of a weight gradient read.
//
// A tile reads a few channels of each pixel. Pixels with many channels are far apart in memory, so they evict each other
// from the caches, and each read waits. In a copy, the channels of a tile are next to those of the next pixel. All taps
// of a window read one copy of x, and so do several tiles of output channels. Several tiles are copied at once, because
// their channels are in one cache line.
#pragma once

#include "backends/cpu/compiler/product/window/PixelWalk.h"
#include "backends/cpu/compiler/product/window/WeightGradientPlan.h"

namespace sluice::cpu {

// The geometry of the copies of a convolution's pixels, with `inputs` and `outputs` elements for a pixel of x and of dY.
// Along an axis on which the window has one element, only the pixels that it reads are copied.
Convolution copiedPixels(const Convolution &op, int64_t inputs, int64_t outputs);

class PixelCopies {
public:
  // Room for the pixels of a block, on the stack. All references must outlive the copies.
  PixelCopies(StageFunction &stage, mlir::Location loc, mlir::VectorType vector, const Convolution &op,
              const WeightGradientPlan &plan);

  // The channels of x that are copied at once: those of several tiles.
  int64_t channelsAtOnce() const;
  // Copies the channels [channel, channel + count) of the pixels that the rows of taps [tap0, tap1) read.
  void copyInput(mlir::OpBuilder &b, const PixelBlock &block, mlir::Value tap0, mlir::Value tap1, mlir::Value channel,
                 int64_t count);
  // The address of those of tile `number`, as if all pixels from the first one on were copied.
  mlir::Value input(mlir::OpBuilder &b, const PixelBlock &block, mlir::Value tap0, mlir::Value tap1,
                    mlir::Value number) const;
  // Copies the output channels [column, column + count), as those of group `number` of the task.
  void copyOutput(mlir::OpBuilder &b, const PixelBlock &block, mlir::Value number, mlir::Value column, int64_t count);
  // Their address, as if all pixels from the first one on were copied.
  mlir::Value output(mlir::OpBuilder &b, const PixelBlock &block, mlir::Value number) const;

private:
  // The rows of pixels [first, last) of all images, counted from the first image on.
  struct Rows {
    mlir::Value first, last;
  };
  Rows outputRows(mlir::OpBuilder &b, const PixelBlock &block) const;
  Rows inputRows(mlir::OpBuilder &b, const PixelBlock &block, mlir::Value tap0, mlir::Value tap1) const;
  int64_t mostInputRows() const;
  void copyChannels(mlir::OpBuilder &b, mlir::Value from, mlir::Value to, mlir::Value channel, int64_t count) const;
  void prefetchNext(mlir::OpBuilder &b, mlir::Value from, int64_t count) const;
  mlir::Value address(mlir::OpBuilder &b, mlir::Value base, mlir::Value offset) const;

  StageFunction &stage;
  mlir::Location loc;
  mlir::VectorType vector;
  const Convolution &op;
  const WeightGradientPlan &plan;
  Convolution copied;
  int64_t elementsOfTile, elementsOfGroup; // of the copies of x and dY
  mlir::Value inputs, outputs;
};

} // namespace sluice::cpu
