#include "backends/cpu/compiler/product/window/PixelCopies.h"

#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sluice::cpu {

using namespace mlir;

static Convolution::Axis copiedAxis(const Convolution::Axis &axis) {
  if (axis.kernel != 1 || leavesImage(axis))
    return axis;
  Convolution::Axis copied;
  copied.input = axis.output();
  return copied;
}

Convolution copiedPixels(const Convolution &op, int64_t inputs, int64_t outputs) {
  Convolution copied = op;
  copied.inputChannels = inputs;
  copied.outputChannels = outputs;
  copied.height = copiedAxis(op.height);
  copied.width = copiedAxis(op.width);
  return copied;
}

// Whole vectors of dY are stored, so each of its copies ends with room for one. The same room after copies of x keeps
// their distance from being a power of two, where they would evict each other from the cache.
PixelCopies::PixelCopies(StageFunction &stage, Location loc, VectorType vector, const Convolution &op,
                         const WeightGradientPlan &plan)
    : stage(stage), loc(loc), vector(vector), op(op), plan(plan),
      copied(copiedPixels(op, plan.tileRows(), plan.groups.width)),
      elementsOfTile(mostInputRows() * copied.width.input * plan.tileRows() + vector.getNumElements()),
      elementsOfGroup(plan.imagesAtOnce * plan.pixelRowsAtOnce * op.width.output() * plan.groups.width +
                      vector.getNumElements()) {
  inputs = stage.stack(vector.getElementType(), channelsAtOnce() / plan.tileRows() * elementsOfTile);
  outputs = stage.stack(vector.getElementType(), plan.groupsPerTask * elementsOfGroup);
}

int64_t PixelCopies::channelsAtOnce() const {
  constexpr int64_t worthwhile = 24;
  return llvm::alignTo(worthwhile, plan.tileRows());
}

int64_t PixelCopies::mostInputRows() const {
  const Convolution::Axis &h = copied.height;
  if (plan.pixelRowsAtOnce == h.output())
    return plan.imagesAtOnce * h.input;
  return std::min(h.input, (plan.pixelRowsAtOnce - 1) * h.stride + (h.kernel - 1) * h.dilation + 1);
}

PixelCopies::Rows PixelCopies::outputRows(OpBuilder &b, const PixelBlock &block) const {
  IndexMath math{b, loc};
  int64_t rows = copied.height.output();
  Value first = math.mul(block.image0, rows);
  if (!block.row0)
    return {first, math.mul(block.image1, rows)};
  return {math.add(first, block.row0), math.add(first, math.min(block.row1, math.constant(rows)))};
}

PixelCopies::Rows PixelCopies::inputRows(OpBuilder &b, const PixelBlock &block, Value tap0, Value tap1) const {
  IndexMath math{b, loc};
  const Convolution::Axis &h = copied.height;
  Value first = math.mul(block.image0, h.input);
  if (!block.row0)
    return {first, math.mul(block.image1, h.input)};
  auto rowUnder = [&](Value row, Value tap) {
    return math.add(math.add(math.mul(row, h.stride), math.mul(tap, h.dilation)), -h.padBefore);
  };
  Value lastRow = math.add(math.min(block.row1, math.constant(h.output())), -1);
  Value low = math.max(math.constant(0), rowUnder(block.row0, tap0));
  Value high = math.min(math.constant(h.input), math.add(rowUnder(lastRow, math.add(tap1, -1)), 1));
  return {math.add(first, low), math.add(first, high)};
}

// Copies whole vectors of `count` channels of one pixel of x, each piece to the copy of its tile.
void PixelCopies::copyChannels(OpBuilder &b, Value from, Value to, Value channel, int64_t count) const {
  Tile ofPixel(loc, vector, 1, count, /*wholeVectors=*/false);
  int64_t rows = plan.tileRows();
  for (auto [v, loaded] : llvm::enumerate(ofPixel.loadB(b, from, {}))) {
    int64_t first = int64_t(v) * vector.getNumElements(), lanes = ofPixel.lanesOf(int64_t(v));
    Value its = loaded;
    if (op.inputFormula)
      its = op.inputFormula(stage, b, loc, IndexMath{b, loc}.add(channel, first), loaded, lanes);
    for (int64_t at = first, next; at < first + lanes; at = next) {
      next = std::min((at / rows + 1) * rows, first + lanes);
      Value piece = b.create<vector::ExtractStridedSliceOp>(loc, its, ArrayRef<int64_t>{at - first},
                                                            ArrayRef<int64_t>{next - at}, ArrayRef<int64_t>{1});
      storeVector(b, loc, piece, elementAddress(b, loc, op.element, to, at / rows * elementsOfTile + at % rows));
    }
  }
}

// Prefetches the channels that are copied next. Prefetches beyond the last one never fault.
void PixelCopies::prefetchNext(OpBuilder &b, Value from, int64_t count) const {
  int64_t line = 64 * 8 / op.element.getIntOrFloatBitWidth();
  for (int64_t at = 0; at < count; at += line)
    prefetch(b, loc, elementAddress(b, loc, op.element, from, count + at), /*forWrite=*/false, /*locality=*/2);
}

void PixelCopies::copyInput(OpBuilder &b, const PixelBlock &block, Value tap0, Value tap1, Value channel,
                            int64_t count) {
  IndexMath math{b, loc};
  Rows rows = inputRows(b, block, tap0, tap1);
  int64_t stepDown = copied.height.input == op.height.input ? 1 : op.height.stride;
  int64_t stepAcross = copied.width.input == op.width.input ? 1 : op.width.stride;
  Value source = address(b, stage.buffer(op.input.buffer), math.add(channel, op.input.offset));
  auto copyPixels = [&](OpBuilder &body, Value fromRow, Value toRow, Value pixels) {
    loopOver(body, loc, constantI64(body, loc, 0), pixels, 1, [&](OpBuilder &inner, Value pixel) {
      IndexMath at{inner, loc};
      Value from = address(inner, fromRow, at.mul(pixel, stepAcross * op.inputChannels));
      Value to = address(inner, toRow, at.mul(pixel, copied.inputChannels));
      copyChannels(inner, from, to, channel, count);
      prefetchNext(inner, from, count);
    });
  };
  if (stepDown == 1 && stepAcross == 1) {
    Value pixels = math.mul(math.sub(rows.last, rows.first), op.width.input);
    copyPixels(b, address(b, source, math.mul(rows.first, op.width.input * op.inputChannels)), inputs, pixels);
    return;
  }
  loopOver(b, loc, rows.first, rows.last, 1, [&](OpBuilder &body, Value row) {
    IndexMath at{body, loc};
    Value image = at.div(row, copied.height.input), within = at.rem(row, copied.height.input);
    Value from = at.add(at.mul(image, op.height.input), at.mul(within, stepDown));
    copyPixels(body, address(body, source, at.mul(from, op.width.input * op.inputChannels)),
               address(body, inputs, at.mul(at.sub(row, rows.first), copied.width.input * copied.inputChannels)),
               at.constant(copied.width.input));
  });
}

Value PixelCopies::input(OpBuilder &b, const PixelBlock &block, Value tap0, Value tap1, Value number) const {
  IndexMath math{b, loc};
  Value first = math.mul(inputRows(b, block, tap0, tap1).first, copied.width.input * copied.inputChannels);
  return address(b, inputs, math.sub(math.mul(number, elementsOfTile), first));
}

void PixelCopies::copyOutput(OpBuilder &b, const PixelBlock &block, Value number, Value column, int64_t count) {
  IndexMath math{b, loc};
  Rows rows = outputRows(b, block);
  int64_t width = op.width.output();
  Value from = address(b, stage.buffer(op.output.buffer), math.add(column, op.output.offset));
  Value to = address(b, outputs, math.mul(number, elementsOfGroup)), first = math.mul(rows.first, width);
  loopOver(b, loc, first, math.mul(rows.last, width), 1, [&](OpBuilder &body, Value pixel) {
    IndexMath at{body, loc};
    Value copy = address(body, to, at.mul(at.sub(pixel, first), copied.outputChannels));
    Tile ofPixel(loc, vector, 1, count, /*wholeVectors=*/false);
    // The last vector may extend into the next pixel's place, which is stored later.
    ofPixel.store(body, Sums(ofPixel.loadB(body, address(body, from, at.mul(pixel, op.outputChannels)), {})), copy, 0);
  });
}

Value PixelCopies::output(OpBuilder &b, const PixelBlock &block, Value number) const {
  IndexMath math{b, loc};
  Value first = math.mul(outputRows(b, block).first, copied.width.output() * copied.outputChannels);
  return address(b, outputs, math.sub(math.mul(number, elementsOfGroup), first));
}

Value PixelCopies::address(OpBuilder &b, Value base, Value offset) const {
  return elementAddress(b, loc, op.element, base, offset);
}

} // namespace sluice::cpu
