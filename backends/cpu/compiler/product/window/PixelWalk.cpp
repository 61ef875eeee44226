#include "backends/cpu/compiler/product/window/PixelWalk.h"

#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"

namespace sluice::cpu {

using namespace mlir;

SmallVector<PixelSegment> pixelSegments(const Convolution::Axis &axis, ArrayRef<int64_t> taps) {
  SmallVector<PixelSegment> result;
  for (int64_t out = 0; out < axis.output(); ++out) {
    SmallVector<bool> valid(axis.kernel, false);
    for (int64_t tap : taps) {
      int64_t in = out * axis.stride + tap * axis.dilation - axis.padBefore;
      valid[tap] = in >= 0 && in < axis.input;
    }
    if (!result.empty() && result.back().validTaps == valid)
      ++result.back().end;
    else
      result.push_back({out, out + 1, valid});
  }
  return result;
}

namespace {

class PixelWalk {
public:
  PixelWalk(Location loc, const Convolution &op, const PixelBlock &block) : loc(loc), op(op), block(block) {}

  Sums overBand(OpBuilder &b, const PixelBand &band, Value xImage, Value dYImage, Sums sums) const {
    IndexMath math{b, loc};
    Value begin = block.row0 ? math.max(band.begin, block.row0) : band.begin;
    Value end = block.row0 ? math.min(band.end, block.row1) : band.end;
    if (rowsAreAdjacent())
      return overRun(b, {math.mul(begin, op.width.input), math.mul(end, op.width.input), band.runs.front().step},
                     xImage, dYImage, sums);
    return accumulateOver(b, loc, begin, end, 1, sums, [&](OpBuilder &down, Value oh, Sums &ofRow) {
      IndexMath perRow{down, loc};
      int64_t xRow = op.height.stride * op.width.input * op.inputChannels;
      Value x = address(down, xImage, perRow.mul(oh, xRow));
      Value dY = address(down, dYImage, perRow.mul(oh, op.width.output() * op.outputChannels));
      for (const PixelRun &run : band.runs)
        ofRow = overRun(down, run, x, dY, ofRow);
    });
  }

  Value address(OpBuilder &b, Value base, Value offset) const {
    return elementAddress(b, loc, op.element, base, offset);
  }

private:
  // Whether every pixel reads one pixel of x, and the next one the next: the rows of an image are one run.
  bool rowsAreAdjacent() const {
    auto readsAll = [](const Convolution::Axis &axis) {
      return axis.kernel == 1 && axis.stride == 1 && axis.padBefore == 0 && axis.input == axis.output();
    };
    return readsAll(op.height) && readsAll(op.width);
  }

  Sums overRun(OpBuilder &b, const PixelRun &run, Value xRow, Value dYRow, Sums sums) const {
    return accumulateOver(b, loc, run.begin, run.end, 1, sums, [&](OpBuilder &across, Value ow, Sums &ofPixel) {
      IndexMath perPixel{across, loc};
      run.step(across, address(across, xRow, perPixel.mul(ow, op.width.stride * op.inputChannels)),
               address(across, dYRow, perPixel.mul(ow, op.outputChannels)), ofPixel);
    });
  }

  Location loc;
  const Convolution &op;
  const PixelBlock &block;
};

} // namespace

Sums overPixels(OpBuilder &b, Location loc, const Convolution &op, const PixelBlock &block, ArrayRef<PixelBand> bands,
                Value x, Value dY, Sums sums) {
  PixelWalk walk(loc, op, block);
  int64_t xSize = op.height.input * op.width.input * op.inputChannels;
  int64_t dYSize = op.height.output() * op.width.output() * op.outputChannels;
  return accumulateOver(b, loc, block.image0, block.image1, 1, sums, [&](OpBuilder &images, Value image, Sums &all) {
    IndexMath perImage{images, loc};
    Value xImage = walk.address(images, x, perImage.mul(image, xSize));
    Value dYImage = walk.address(images, dY, perImage.mul(image, dYSize));
    for (const PixelBand &band : bands)
      all = walk.overBand(images, band, xImage, dYImage, all);
  });
}

} // namespace sluice::cpu
