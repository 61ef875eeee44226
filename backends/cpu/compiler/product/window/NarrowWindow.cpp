#include "backends/cpu/compiler/product/window/NarrowWindow.h"

#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/DotTile.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"
#include "backends/cpu/compiler/product/window/TileRuns.h"

#include "llvm/Support/MathExtras.h"

namespace sluice::cpu {

using namespace mlir;

int64_t chooseNarrowChannels(const WindowSum &sum, const Target &target) {
  int64_t lanes = target.lanes(sum.element.getIntOrFloatBitWidth());
  int64_t narrow = sum.outputChannels % lanes;
  double asVector = 0, alongTerms = 0; // multiply-adds of one output
  for (const WindowSum::Phase &phase : sum.phases) {
    const WindowAxis &w = phase.width;
    if (w.taps > 1 && (w.tapStep != 1 || w.kernelStep != 1))
      return 0; // a row of taps is not contiguous
    double runs = phase.height.taps, length = w.taps * sum.inputChannels;
    asVector += runs * length;
    // Reducing the lanes takes about as long as eight multiply-adds; loads cost relatively more than in a large tile.
    alongTerms += narrow * (1.25 * runs * llvm::divideCeil(length, lanes) + 8);
  }
  return alongTerms < asVector ? narrow : 0;
}

namespace {
// `count` times `size` neighbouring pixels, all with the valid taps [first, last) along the width.
struct EvenPixels {
  int64_t start, size, count, first, last;
};
} // namespace

static SmallVector<EvenPixels> pixelRuns(const WindowAxis &axis, int64_t rows) {
  SmallVector<EvenPixels> runs;
  for (int64_t start = 0, end; start < axis.outputs; start = end) {
    auto taps = validTaps(axis, start);
    for (end = start + 1; end < axis.outputs && validTaps(axis, end) == taps;)
      ++end;
    int64_t tiles = llvm::divideCeil(end - start, rows), size = (end - start) / tiles, larger = (end - start) % tiles;
    if (larger)
      runs.push_back({start, size + 1, larger, taps.first, taps.second});
    runs.push_back({start + larger * (size + 1), size, tiles - larger, taps.first, taps.second});
  }
  return runs;
}

namespace {
class NarrowRowEmitter {
public:
  NarrowRowEmitter(StageFunction &stage, Location loc, const WindowSum &op, const NarrowRow &row, const Target &target)
      : stage(stage), loc(loc), op(op), row(row), h(row.phase.height), w(row.phase.width),
        vector(VectorType::get({target.lanes(op.element.getIntOrFloatBitWidth())}, op.element)),
        tileRows(dotTileRows(op.narrow, target.numVectorRegisters)) {}

  void emit(OpBuilder &b) {
    IndexMath math{b, loc};
    for (const EvenPixels &run : pixelRuns(w, tileRows)) {
      if (run.count == 1)
        emitTile(b, run, math.constant(run.start));
      else
        loopOver(b, loc, math.constant(run.start), math.constant(run.start + run.size * run.count), run.size,
                 [&](OpBuilder &body, Value pixel) { emitTile(body, run, pixel); });
    }
  }

private:
  void emitTile(OpBuilder &b, const EvenPixels &run, Value pixel) {
    IndexMath math{b, loc};
    DotTile tile(loc, vector, run.size, op.narrow);
    Value place = math.add(math.add(math.mul(pixel, w.inputStep), w.inputStart), run.first);
    Value corner = address(b, row.input, math.mul(place, op.inputChannels));
    int64_t kernelRow = w.kernel * op.inputChannels, kernelSize = h.kernel * kernelRow;
    Value firstTap = address(b, stage.buffer(op.narrowWeights.buffer),
                             math.constant(op.narrowWeights.offset + h.kernelStart * kernelRow +
                                           (w.kernelStart + run.first) * op.inputChannels));
    Value tap0 = row.tap0 ? row.tap0 : math.constant(0), tap1 = row.tap1 ? row.tap1 : math.constant(h.taps);
    Sums sums = accumulateOver(b, loc, tap0, tap1, 1, tile.zeros(b), [&](OpBuilder &body, Value tap, Sums &carried) {
      IndexMath inner{body, loc};
      Value input = address(body, corner, inner.mul(tap, h.tapStep * w.inputSize * op.inputChannels));
      Value weights = address(body, firstTap, inner.mul(tap, h.kernelStep * kernelRow));
      carried = tile.addRun(body, carried, input, w.inputStep * op.inputChannels, weights, kernelSize,
                            (run.last - run.first) * op.inputChannels);
    });
    Value oh = math.add(math.mul(row.j, h.outputStep), h.outputStart);
    for (int64_t r = 0; r < run.size; ++r) {
      Value ow = math.add(math.mul(math.add(pixel, r), w.outputStep), w.outputStart);
      op.epilogue.store(stage, b, loc, {row.image, math.constant(op.outputChannels - op.narrow), oh, ow},
                        tile.finish(b, sums, r));
    }
  }

  Value address(OpBuilder &b, Value base, Value offset) { return elementAddress(b, loc, op.element, base, offset); }

  StageFunction &stage;
  Location loc;
  const WindowSum &op;
  const NarrowRow &row;
  const WindowAxis &h, &w;
  VectorType vector;
  int64_t tileRows;
};
} // namespace

void emitNarrowRow(StageFunction &stage, OpBuilder &b, Location loc, const WindowSum &sum, const NarrowRow &row,
                   const Target &target) {
  NarrowRowEmitter(stage, loc, sum, row, target).emit(b);
}

} // namespace sluice::cpu
