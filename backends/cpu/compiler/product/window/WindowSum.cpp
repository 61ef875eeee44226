// A register tile is a run of output pixels in one row times a group of output channels. Where the window may leave the
// image, the valid taps along the height are the bounds of a loop; along the width they are known for every pixel of
// every tile when the code is generated, and tiles with the same valid taps share one loop. Tiles whose taps are all
// valid read (tap, channel) as one contiguous run.
#include "backends/cpu/compiler/product/window/WindowSum.h"

#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/DotTile.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"
#include "backends/cpu/compiler/product/tile/Tile.h"
#include "backends/cpu/compiler/product/tile/TileChoice.h"
#include "backends/cpu/compiler/product/window/NarrowWindow.h"
#include "backends/cpu/compiler/product/window/TileRuns.h"

#include "llvm/Support/MathExtras.h"

namespace sluice::cpu {

using namespace mlir;

// Runs shorter than this are unrolled whole.
static constexpr int64_t shortRun = 12;
// Rows of the window with fewer terms than this do not get separate sums.
static constexpr int64_t worthwhileSum = 128;

namespace {

class WindowSumEmitter {
public:
  WindowSumEmitter(const StageModule &module, llvm::StringRef name, Location loc, const WindowSum &sum,
                   const Target &target)
      : module(module), name(name), loc(loc), op(sum), target(target),
        lanes(target.lanes(sum.element.getIntOrFloatBitWidth())), vector(VectorType::get({lanes}, sum.element)) {}

  Stage emit() {
    plan();
    StageFunction stage = StageFunction::create(module, name, loc);
    stage.forEachTask([&](OpBuilder &b, Value task) { emitTask(stage, b, task); });
    return {name, blocks * groupCount(), imagesPerTask, wideChannels() ? groups.text() : narrowText()};
  }

private:
  int64_t wideChannels() const { return op.outputChannels - op.narrow; }
  /// Without wide channels, the narrow ones are a group.
  int64_t groupCount() const { return std::max<int64_t>(1, groups.count()); }
  std::string narrowText() const {
    return std::to_string(dotTileRows(op.narrow, target.numVectorRegisters)) + " x " + std::to_string(op.narrow);
  }
  int64_t elementBytes() const { return op.element.getIntOrFloatBitWidth() / 8; }

  // ---- Planning ----

  void plan() {
    int64_t flops = 0, terms = 0;
    TileProblem problem;
    for (const WindowSum::Phase &phase : op.phases) {
      int64_t depth = phase.taps() * op.inputChannels;
      flops += 2 * phase.height.outputs * phase.width.outputs * depth * op.outputChannels;
      height = std::max(height, phase.height.outputs);
      problem.rows = std::max(problem.rows, phase.width.outputs);
      terms = std::max(terms, depth);
      problem.rowBytes = phase.width.inputStep * op.inputChannels * elementBytes();
    }
    problem.elementBits = op.element.getIntOrFloatBitWidth();
    problem.columns = wideChannels();
    problem.panel = op.panel;
    problem.depth = terms;
    problem.evenRows = true;
    groups = chooseTiles(problem, target);
    // About a million multiply-adds a task.
    int64_t wanted = 2 << 20, perGroup = std::max<int64_t>(1, flops / groupCount());
    int64_t few = fewTasks(flops * op.rows) / (op.rows * groupCount());
    blocks = std::clamp<int64_t>(std::max(perGroup / wanted / 2, few), 1, height);
    rowsOfBlock = llvm::divideCeil(height, blocks);
    blocks = llvm::divideCeil(height, rowsOfBlock);
    imagesPerTask = std::clamp<int64_t>(wanted / perGroup, 1, std::max<int64_t>(1, op.rows / 32));
    // Weights that fill the second-level cache are amortized over several images.
    int64_t weightBytes = terms * std::min(groups.width, wideChannels()) * elementBytes();
    if (weightBytes > target.l2 / 4)
      imagesPerTask = std::max(imagesPerTask, op.rows * groupCount() * blocks / 32);
    int64_t inputs = 0, weights = 0;
    for (const WindowSum::Phase &phase : op.phases) {
      inputs = op.rows * phase.height.inputSize * phase.width.inputSize * op.inputChannels * elementBytes();
      weights += phase.taps() * op.inputChannels * op.outputChannels * elementBytes();
    }
    imagesInner = target.prefersRowsInner(inputs, llvm::divideCeil(op.rows, imagesPerTask), weights, groupCount());
  }

  // ---- Emission ----

  void emitTask(StageFunction &stage, OpBuilder &b, Value task) {
    IndexMath math{b, loc};
    Value block = math.rem(task, blocks), rest = math.div(task, blocks), group, images;
    if (imagesInner) {
      Value parts = math.ceilDiv(stage.rows, imagesPerTask);
      group = math.div(rest, parts), images = math.rem(rest, parts);
    } else {
      group = math.rem(rest, groupCount()), images = math.div(rest, groupCount());
    }
    Value firstImage = math.mul(images, imagesPerTask);
    Value lastImage = math.min(math.add(firstImage, imagesPerTask), stage.rows);
    Value j0 = math.mul(block, rowsOfBlock);
    Value j1 = math.add(j0, rowsOfBlock);
    loopOver(b, loc, firstImage, lastImage, 1, [&](OpBuilder &body, Value image) {
      if (wideChannels())
        emitGroup(stage, body, image, j0, j1, group);
      if (op.narrow)
        emitNarrow(stage, body, image, j0, j1, group);
    });
  }

  // The channels that fill no vector join the last group.
  void emitNarrow(StageFunction &stage, OpBuilder &b, Value image, Value j0, Value j1, Value group) {
    IndexMath math{b, loc};
    auto emitAll = [&](OpBuilder &body) {
      for (const WindowSum::Phase &phase : op.phases)
        forEachRow(stage, body, phase, image, j0, j1, group, op.narrow, [&](OpBuilder &inner, const Row &row) {
          emitNarrowRow(stage, inner, loc, op, {phase, row.image, row.j, row.tap0, row.tap1, row.input}, target);
        });
    };
    if (groupCount() == 1)
      return emitAll(b);
    ifThen(b, loc, math.less(math.constant(groups.count() - 2), group), emitAll);
  }

  void emitGroup(StageFunction &stage, OpBuilder &b, Value image, Value j0, Value j1, Value group) {
    auto rowsOf = [&](OpBuilder &body, int64_t columns, int64_t tileRows) {
      for (const WindowSum::Phase &phase : op.phases)
        emitRows(stage, body, phase, image, j0, j1, group, columns, tileRows);
    };
    if (!groups.tail)
      return rowsOf(b, groups.width, groups.rows);
    if (!groups.full)
      return rowsOf(b, groups.tail, groups.tailRows);
    Value full = IndexMath{b, loc}.less(group, constantI64(b, loc, groups.full));
    ifThenElse(
        b, loc, full, [&](OpBuilder &then) { rowsOf(then, groups.width, groups.rows); },
        [&](OpBuilder &otherwise) { rowsOf(otherwise, groups.tail, groups.tailRows); });
  }

  // State shared by the tiles of one row of outputs.
  struct Row {
    const WindowSum::Phase &phase;
    Value image, j;   // the row
    Value column;     // first output channel
    int64_t columns;  // how many
    Value tap0, tap1; // valid taps along the height; null: all of them
    Value input;      // address of the image's row under tap 0
    Value weights;    // address of the group's weights
  };

  void forEachRow(StageFunction &stage, OpBuilder &b, const WindowSum::Phase &phase, Value image, Value j0, Value j1,
                  Value group, int64_t columns, llvm::function_ref<void(OpBuilder &, const Row &)> emitRow) {
    IndexMath math{b, loc};
    Value end = math.min(j1, math.constant(phase.height.outputs));
    loopOver(b, loc, j0, end, 1,
             [&](OpBuilder &body, Value j) { emitRow(body, rowAt(stage, body, phase, image, j, group, columns)); });
  }

  void emitRows(StageFunction &stage, OpBuilder &b, const WindowSum::Phase &phase, Value image, Value j0, Value j1,
                Value group, int64_t columns, int64_t tileRows) {
    forEachRow(stage, b, phase, image, j0, j1, group, columns, [&](OpBuilder &body, const Row &row) {
      for (const TileRun &run : tileRuns(phase.width, tileRows))
        forEachTile(body, loc, run, [&](OpBuilder &inner, Value pixel) { emitTile(stage, inner, row, run, pixel); });
    });
  }

  Row rowAt(StageFunction &stage, OpBuilder &b, const WindowSum::Phase &phase, Value image, Value j, Value group,
            int64_t columns) {
    IndexMath math{b, loc};
    Row row{phase, image, j, math.mul(group, groups.width), columns, {}, {}, {}, {}};
    const WindowAxis &h = phase.height, &w = phase.width;
    Value place = inputPlace(b, loc, h, j);
    std::tie(row.tap0, row.tap1) = validTapsAt(b, loc, h, place);
    Value offset = math.mul(math.add(math.mul(image, h.inputSize), place), w.inputSize * op.inputChannels);
    row.input = address(b, stage.buffer(op.input.buffer), math.add(offset, op.input.offset));
    Value panel = math.div(row.column, op.panel), within = math.rem(row.column, op.panel);
    Value weights = math.add(math.mul(panel, distanceOfPanels(phase)), within);
    int64_t firstTap = (h.kernelStart * w.kernel + w.kernelStart) * op.inputChannels * op.panel;
    row.weights = address(b, stage.buffer(op.weights.buffer), math.add(weights, op.weights.offset + firstTap));
    return row;
  }

  // The distance from one panel of the weights to the next, in elements.
  int64_t distanceOfPanels(const WindowSum::Phase &phase) const {
    return phase.height.kernel * phase.width.kernel * op.inputChannels * op.panel;
  }

  void emitTile(StageFunction &stage, OpBuilder &b, const Row &row, const TileRun &run, Value pixel) {
    const WindowAxis &h = row.phase.height, &w = row.phase.width;
    IndexMath math{b, loc};
    Tile tile(loc, vector, run.size, row.columns, /*wholeVectors=*/true);
    tile.panelsOfB(op.panel, distanceOfPanels(row.phase));
    if (row.phase.taps() * op.inputChannels * row.columns * elementBytes() > target.l1 / 2)
      tile.prefetchB(prefetchSteps * op.panel);
    Value oh = math.add(math.mul(row.j, h.outputStep), h.outputStart);
    auto indexOf = [&](OpBuilder &inner, Value r, int64_t v) -> SmallVector<Value> {
      IndexMath at{inner, loc};
      Value ow = at.add(at.mul(at.add(pixel, r), w.outputStep), w.outputStart);
      return {row.image, at.add(row.column, v * lanes), oh, ow};
    };
    if (op.epilogue.prefetch)
      tile.forEachLine(b, [&](OpBuilder &inner, Value r, int64_t v) {
        op.epilogue.prefetch(stage, inner, loc, indexOf(inner, r, v));
      });
    Sums sums = row.phase.taps() == 0 ? tile.zeros(b) : sumOverWindow(b, tile, row, run, pixel);
    tile.forEachRow(b, stage, sums, op.epilogue.isLoop(row.phase.taps() * op.inputChannels), /*count=*/Value(),
                    [&](OpBuilder &inner, Value r, ArrayRef<Value> vectors) {
                      for (auto [v, its] : llvm::enumerate(vectors))
                        op.epilogue.store(stage, inner, loc, indexOf(inner, r, v),
                                          firstLanes(inner, loc, its, tile.lanesOf(v)));
                    });
  }

  Sums sumOverWindow(OpBuilder &b, const Tile &tile, const Row &row, const TileRun &run, Value pixel) {
    const WindowAxis &h = row.phase.height, &w = row.phase.width;
    IndexMath math{b, loc};
    Value corner =
        address(b, row.input, math.mul(math.add(math.mul(pixel, w.inputStep), w.inputStart), op.inputChannels));
    int64_t rowStride = h.tapStep * w.inputSize * op.inputChannels;
    int64_t kernelStride = h.kernelStep * w.kernel * op.inputChannels * op.panel;

    auto overHeight = [&](OpBuilder &body, Value tap, int64_t plus, Sums &carried) {
      IndexMath inner{body, loc};
      Value input = address(body, address(body, corner, inner.mul(tap, rowStride)), plus * rowStride);
      Value weights = address(body, address(body, row.weights, inner.mul(tap, kernelStride)), plus * kernelStride);
      addWindowRow(body, tile, row, run, input, weights, carried);
    };
    if (row.tap0)
      return accumulateOver(b, loc, row.tap0, row.tap1, 1, tile.zeros(b),
                            [&](OpBuilder &body, Value tap, Sums &carried) { overHeight(body, tap, 0, carried); });
    bool isShort = row.phase.taps() * op.inputChannels <= 3 * shortRun;
    return accumulateOver(b, loc, h.taps, isShort ? h.taps : 1, tile.zeros(b), overHeight);
  }

  // All taps along the width and all channels, for one tap along the height. If sums are long, groups of taps are
  // summed separately. A pixel's groups follow from the window and its position in the image, not from its tile.
  void addWindowRow(OpBuilder &b, const Tile &tile, const Row &row, const TileRun &run, Value input, Value weights,
                    Sums &sums) {
    const WindowAxis &w = row.phase.width;
    int64_t channels = op.inputChannels;
    bool inParts = row.phase.taps() * channels > termsPerSum && w.taps * channels >= worthwhileSum;
    if (!inParts)
      return addTaps(b, tile, row, run, 0, w.taps, input, weights, sums);
    int64_t size = std::clamp<int64_t>(termsPerSum / channels, 1, w.taps), whole = w.taps / size;
    if (isOneRun(row, run)) {
      sums = accumulateOver(b, loc, whole, 1, sums, [&](OpBuilder &body, Value group, int64_t plus, Sums &carried) {
        IndexMath math{body, loc};
        Value terms = math.mul(math.add(group, plus), size * channels);
        addGroup(body, tile, row, run, 0, size, address(body, input, terms),
                 address(body, weights, math.mul(terms, op.panel)), carried);
      });
      if (w.taps % size)
        addGroup(b, tile, row, run, whole * size, w.taps % size, input, weights, sums);
      return;
    }
    for (int64_t first = 0; first < w.taps; first += size)
      addGroup(b, tile, row, run, first, std::min(size, w.taps - first), input, weights, sums);
  }

  // Whether all pixels of the tiles read (tap, channel) as one contiguous run.
  bool isOneRun(const Row &row, const TileRun &run) const {
    const WindowAxis &w = row.phase.width;
    return w.tapStep == 1 && w.kernelStep == 1 && run.all(w.taps);
  }

  // The sum over the taps [first, first + taps), added to the pixels that have any of them.
  void addGroup(OpBuilder &b, const Tile &tile, const Row &row, const TileRun &run, int64_t first, int64_t taps,
                Value input, Value weights, Sums &sums) {
    Sums before = sums;
    if (op.inputChannels > termsPerSum)
      addTaps(b, tile, row, run, first, taps, input, weights, sums); // a single tap is itself split into parts
    else
      sums = addApart(b, loc, tile, sums, [&](OpBuilder &body, Sums part) {
        addTaps(body, tile, row, run, first, taps, input, weights, part);
        return part;
      });
    for (int64_t r = 0; r < tile.rows(); ++r)
      if (run.last[r] <= first || first + taps <= run.first[r])
        std::copy_n(before.begin() + r * tile.vectors(), tile.vectors(), sums.begin() + r * tile.vectors());
  }

  void addTaps(OpBuilder &b, const Tile &tile, const Row &row, const TileRun &run, int64_t first, int64_t taps,
               Value input, Value weights, Sums &sums) {
    const WindowAxis &w = row.phase.width;
    auto addRunAt = [&](int64_t tap, int64_t length, ArrayRef<bool> valid) {
      addRun(b, tile, row.phase, valid, address(b, input, tap * w.tapStep * op.inputChannels),
             address(b, weights, tap * w.kernelStep * op.inputChannels * op.panel), length, sums);
    };
    if (isOneRun(row, run))
      return addRunAt(first, taps * op.inputChannels, SmallVector<bool>(run.size, true));
    for (int64_t tap = first; tap < first + taps; ++tap) {
      SmallVector<bool> valid;
      for (int64_t r = 0; r < run.size; ++r)
        valid.push_back(run.first[r] <= tap && tap < run.last[r]);
      if (llvm::is_contained(valid, true))
        addRunAt(tap, op.inputChannels, valid);
    }
  }

  // `length` values that are contiguous in the input of each pixel, and rows of the panel.
  void addRun(OpBuilder &b, const Tile &tile, const WindowSum::Phase &phase, ArrayRef<bool> valid, Value input,
              Value weights, int64_t length, Sums &sums) {
    const WindowAxis &w = phase.width;
    int64_t pixelStride = w.inputStep * op.inputChannels;
    int64_t unroll =
        length <= shortRun ? length : std::min<int64_t>(pixelStride, tile.rows() * tile.vectors() >= 16 ? 2 : 4);
    bool overlapping = w.taps > 1 && length <= shortRun;
    auto step = [&](OpBuilder &body, Value k, int64_t plus, Sums &carried) {
      IndexMath inner{body, loc};
      Value a = address(body, address(body, input, k), plus);
      if (overlapping)
        a = launder(body, loc, a);
      SmallVector<Value> aAddresses;
      for (int64_t r = 0; r < tile.rows(); ++r)
        aAddresses.push_back(valid[r] ? address(body, a, r * pixelStride) : Value());
      Value bAddress = address(body, address(body, weights, inner.mul(k, op.panel)), plus * op.panel);
      tile.multiplyAdd(body, carried, aAddresses, bAddress);
    };
    sums = op.inputChannels > termsPerSum ? accumulateInParts(b, loc, tile, length, unroll, sums, step)
                                          : accumulateOver(b, loc, length, unroll, sums, step);
  }

  Value address(OpBuilder &b, Value base, Value offset) { return elementAddress(b, loc, op.element, base, offset); }
  Value address(OpBuilder &b, Value base, int64_t offset) { return elementAddress(b, loc, op.element, base, offset); }

  StageModule module;
  std::string name;
  Location loc;
  const WindowSum &op;
  const Target &target;
  int64_t lanes;
  VectorType vector;

  ColumnGroups groups;
  int64_t height = 0, blocks = 1, rowsOfBlock = 1, imagesPerTask = 1;
  bool imagesInner = false; // consecutive tasks have the same output channels, and different images
};

} // namespace

Stage emitWindowSum(const StageModule &module, llvm::StringRef name, Location loc, const WindowSum &sum,
                    const Target &target) {
  return WindowSumEmitter(module, name, loc, sum, target).emit();
}

} // namespace sluice::cpu
