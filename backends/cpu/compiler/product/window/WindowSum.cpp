// A register tile is a run of output pixels in one row times a group of output channels. Where the window may leave the
// image, the valid taps along the height are the bounds of a loop; along the width they are known for every pixel of
// every tile when the code is generated, and tiles with the same valid taps share one loop. Tiles whose taps are all
// valid read (tap, channel) as one contiguous run.
//
// A row of few pixels gives tiles with few sums, which wait for each other. Then a tile has the pixels of two rows: the
// same row of two images, or two rows of an image if there is only one.
#include "backends/cpu/compiler/product/window/WindowSum.h"

#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/DotTile.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"
#include "backends/cpu/compiler/product/tile/Tile.h"
#include "backends/cpu/compiler/product/tile/TileChoice.h"
#include "backends/cpu/compiler/product/window/NarrowWindow.h"
#include "backends/cpu/compiler/product/window/TileRuns.h"
#include "backends/cpu/compiler/product/window/WindowTile.h"

#include "llvm/Support/MathExtras.h"

namespace sluice::cpu {

using namespace mlir;

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
    return {name, blocks * groupCount(), imagesPerTask, tileText()};
  }

private:
  int64_t wideChannels() const { return op.outputChannels - op.narrow; }
  /// Without wide channels, the narrow ones are a group.
  int64_t groupCount() const { return std::max<int64_t>(1, groups.count()); }
  std::string tileText() const {
    if (!wideChannels())
      return std::to_string(dotTileRows(op.narrow, target.numVectorRegisters)) + " x " + std::to_string(op.narrow);
    auto pixelsOf = [&](int64_t rows, int64_t columns) {
      return pixelsOfPairs(op.phases.front().width, rows, columns);
    };
    if (int64_t pixels = groups.full ? pixelsOf(groups.rows, groups.width) : 0; pixels && (op.rows > 1 || height > 1))
      return "2 x " + std::to_string(pixels) + " x " + std::to_string(groups.width);
    return groups.text();
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
    if (pairsImages())
      imagesPerTask = llvm::alignTo(imagesPerTask, 2);
  }

  // The cycles of a term of all pixels of `rows` rows, in tiles of at most `size` pixels of each row.
  double cyclesOfTerm(const WindowAxis &width, int64_t size, int64_t vectors, int64_t rows) const {
    double cycles = 0;
    for (const TileRun &run : tileRuns(width, size))
      for (int64_t tap = 0; tap < width.taps; ++tap)
        if (int64_t pixels = run.pixelsWith(tap))
          cycles += double(run.count) *
                    std::max(double(pixels * vectors * rows) / double(target.fmaPorts), double(target.fmaLatency));
    return cycles;
  }

  // Whether tiles have pixels of two images.
  bool pairsImages() const {
    auto isPaired = [&](const WindowSum::Phase &phase) {
      return (groups.full && pixelsOfPairs(phase.width, groups.rows, groups.width)) ||
             (groups.tail && pixelsOfPairs(phase.width, groups.tailRows, groups.tail));
    };
    return op.rows > 1 && llvm::any_of(op.phases, isPaired);
  }

  // The number of pixels of each row in tiles of two rows; 0: tiles of `size` pixels of one row are as good.
  int64_t pixelsOfPairs(const WindowAxis &width, int64_t size, int64_t columns) const {
    constexpr double worthwhile = 0.95;
    int64_t vectors = llvm::divideCeil(columns, lanes), most = maxTileRows(vectors, target) / 2;
    bool isPaired =
        most > 0 && cyclesOfTerm(width, most, vectors, 2) < 2 * worthwhile * cyclesOfTerm(width, size, vectors, 1);
    return isPaired ? most : 0;
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
    auto overImages = [&](Value first, Value last, int64_t images) {
      loopOver(b, loc, first, last, images, [&](OpBuilder &body, Value image) {
        if (wideChannels())
          emitGroup(stage, body, {image, images, j0, j1}, group);
        for (int64_t i = 0; op.narrow > 0 && i < images; ++i)
          emitNarrow(stage, body, {IndexMath{body, loc}.add(image, i), 1, j0, j1}, group);
      });
    };
    if (!pairsImages())
      return overImages(firstImage, lastImage, 1);
    Value lastPair = math.sub(lastImage, math.rem(math.sub(lastImage, firstImage), 2));
    overImages(firstImage, lastPair, 2);
    overImages(lastPair, lastImage, 1);
  }

  // Rows [j0, j1) of `images` images, 1 or 2.
  struct Rows {
    Value image;
    int64_t images;
    Value j0, j1;
  };

  // The channels that fill no vector join the last group.
  void emitNarrow(StageFunction &stage, OpBuilder &b, const Rows &rows, Value group) {
    IndexMath math{b, loc};
    auto emitAll = [&](OpBuilder &body) {
      for (const WindowSum::Phase &phase : op.phases)
        forEachRow(stage, body, phase, rows, group, op.narrow, [&](OpBuilder &inner, const WindowRow &row) {
          emitNarrowRow(stage, inner, loc, op, {phase, row.image, row.j, row.taps.first, row.taps.last, row.input},
                        target);
        });
    };
    if (groupCount() == 1)
      return emitAll(b);
    ifThen(b, loc, math.less(math.constant(groups.count() - 2), group), emitAll);
  }

  void emitGroup(StageFunction &stage, OpBuilder &b, const Rows &rows, Value group) {
    auto rowsOf = [&](OpBuilder &body, int64_t columns, int64_t tileRows) {
      for (const WindowSum::Phase &phase : op.phases)
        emitRows(stage, body, phase, rows, group, columns, tileRows);
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

  void emitRows(StageFunction &stage, OpBuilder &b, const WindowSum::Phase &phase, const Rows &rows, Value group,
                int64_t columns, int64_t tileRows) {
    IndexMath math{b, loc};
    auto emitTiles = [&](OpBuilder &body, const WindowRow &row, int64_t pixels) {
      for (const TileRun &run : tileRuns(phase.width, pixels))
        forEachTile(body, loc, run, [&](OpBuilder &inner, Value pixel) { emitTile(stage, inner, row, run, pixel); });
    };
    auto emitSingle = [&](OpBuilder &body, const WindowRow &row) { emitTiles(body, row, tileRows); };
    int64_t pixels = pixelsOfPairs(phase.width, tileRows, columns);
    if (rows.images == 2 && pixels)
      return forEachRow(stage, b, phase, rows, group, columns, [&](OpBuilder &body, WindowRow row) {
        row.rows = 2;
        row.pitch = phase.height.inputSize * phase.width.inputSize * op.inputChannels;
        emitTiles(body, row, pixels);
      });
    if (rows.images == 2)
      return loopOver(b, loc, rows.image, math.add(rows.image, 2), 1, [&](OpBuilder &body, Value image) {
        forEachRow(stage, body, phase, {image, 1, rows.j0, rows.j1}, group, columns, emitSingle);
      });
    if (op.rows != 1 || !pixels)
      return forEachRow(stage, b, phase, rows, group, columns, emitSingle);
    Value end = math.min(rows.j1, math.constant(phase.height.outputs));
    Value last = math.sub(end, math.rem(math.max(math.sub(end, rows.j0), math.constant(0)), 2));
    loopOver(b, loc, rows.j0, last, 2, [&](OpBuilder &body, Value j) {
      WindowRow row = rowAt(stage, body, phase, rows.image, j, group, columns);
      row.rows = 2;
      row.pitch = phase.height.inputStep * phase.width.inputSize * op.inputChannels;
      row.tapsOfSecond = tapsAt(body, phase, IndexMath{body, loc}.add(j, 1));
      emitTiles(body, row, pixels);
    });
    forEachRow(stage, b, phase, {rows.image, 1, last, end}, group, columns, emitSingle);
  }

  void forEachRow(StageFunction &stage, OpBuilder &b, const WindowSum::Phase &phase, const Rows &rows, Value group,
                  int64_t columns, llvm::function_ref<void(OpBuilder &, const WindowRow &)> emitRow) {
    Value end = IndexMath{b, loc}.min(rows.j1, constantI64(b, loc, phase.height.outputs));
    loopOver(b, loc, rows.j0, end, 1, [&](OpBuilder &body, Value j) {
      emitRow(body, rowAt(stage, body, phase, rows.image, j, group, columns));
    });
  }

  RowTaps tapsAt(OpBuilder &b, const WindowSum::Phase &phase, Value j) {
    auto [first, last] = validTapsAt(b, loc, phase.height, inputPlace(b, loc, phase.height, j));
    return {first, last};
  }

  WindowRow rowAt(StageFunction &stage, OpBuilder &b, const WindowSum::Phase &phase, Value image, Value j, Value group,
                  int64_t columns) {
    IndexMath math{b, loc};
    WindowRow row{phase, image, j, math.mul(group, groups.width), columns, tapsAt(b, phase, j), {}, {}, 1, 0, {}};
    const WindowAxis &h = phase.height, &w = phase.width;
    Value offset =
        math.mul(math.add(math.mul(image, h.inputSize), inputPlace(b, loc, h, j)), w.inputSize * op.inputChannels);
    row.input = address(b, stage.buffer(op.input.buffer), math.add(offset, op.input.offset));
    Value panel = math.div(row.column, op.panel), within = math.rem(row.column, op.panel);
    Value weights = math.add(math.mul(panel, distanceOfPanels(op, phase)), within);
    int64_t firstTap = (h.kernelStart * w.kernel + w.kernelStart) * op.inputChannels * op.panel;
    row.weights = address(b, stage.buffer(op.weights.buffer), math.add(weights, op.weights.offset + firstTap));
    return row;
  }

  // The index in the result of vector `v` of row `r` of a tile.
  SmallVector<Value> indexOf(OpBuilder &b, const WindowRow &row, const TileRun &run, Value pixel, Value r, int64_t v) {
    const WindowAxis &h = row.phase.height, &w = row.phase.width;
    IndexMath math{b, loc};
    Value image = row.image, j = row.j;
    if (row.rows == 2) {
      Value &moved = op.rows == 1 ? j : image;
      moved = math.add(moved, math.div(r, run.size));
      r = math.rem(r, run.size);
    }
    return {image, math.add(row.column, v * lanes), math.add(math.mul(j, h.outputStep), h.outputStart),
            math.add(math.mul(math.add(pixel, r), w.outputStep), w.outputStart)};
  }

  void emitTile(StageFunction &stage, OpBuilder &b, const WindowRow &row, const TileRun &run, Value pixel) {
    Tile tile(loc, vector, row.rows * run.size, row.columns, /*wholeVectors=*/true);
    tile.panelsOfB(op.panel, distanceOfPanels(op, row.phase));
    if (row.phase.taps() * op.inputChannels * row.columns * elementBytes() > target.l1 / 2)
      tile.prefetchB(prefetchSteps * op.panel);
    if (op.epilogue.prefetch)
      tile.forEachLine(b, [&](OpBuilder &inner, Value r, int64_t v) {
        op.epilogue.prefetch(stage, inner, loc, indexOf(inner, row, run, pixel, r, v));
      });
    Sums sums = row.phase.taps() == 0 ? tile.zeros(b) : sumOverWindow(b, loc, op, row, run, tile, pixel);
    tile.forEachRow(b, stage, sums, op.epilogue.isLoop(row.phase.taps() * op.inputChannels), /*count=*/Value(),
                    [&](OpBuilder &inner, Value r, ArrayRef<Value> vectors) {
                      for (auto [v, its] : llvm::enumerate(vectors))
                        op.epilogue.store(stage, inner, loc, indexOf(inner, row, run, pixel, r, v),
                                          firstLanes(inner, loc, its, tile.lanesOf(v)));
                    });
  }

  Value address(OpBuilder &b, Value base, Value offset) { return elementAddress(b, loc, op.element, base, offset); }

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
