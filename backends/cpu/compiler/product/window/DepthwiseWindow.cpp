// A register tile is a run of output pixels in one row times a few vectors of channels. A step adds one tap: the tile
// loads one vector of weights for each vector of channels, and one vector of the image for each sum. Lanes are channels,
// so the taps of each sum are added in their order, on any target.
#include "backends/cpu/compiler/product/window/DepthwiseWindow.h"

#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"
#include "backends/cpu/compiler/product/tile/Tile.h"
#include "backends/cpu/compiler/product/window/TileRuns.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

namespace sluice::cpu {

using namespace mlir;

// Sums that hide the latency of a multiply-add.
static constexpr int64_t enoughSums = 8;
// Of a pixel: a cache line, of which each group of channels may be a part.
static constexpr int64_t bytesOfStrip = 64;
// Multiply-adds of vectors in a task: some microseconds.
static constexpr int64_t stepsOfTask = 16 << 10;

namespace {

// The sums of one tile. The last vector of channels may have fewer elements.
struct ChannelTile {
  int64_t pixels;
  SmallVector<VectorType> types; // of each vector of channels
  SmallVector<int64_t> offsets;  // of its first channel
  SmallVector<int64_t> elements; // how many channels

  size_t vectors() const { return types.size(); }
};

class DepthwiseEmitter {
public:
  DepthwiseEmitter(const StageModule &module, llvm::StringRef name, Location loc, const WindowSum &sum, bool flipped,
                   const Target &target)
      : module(module), name(name), loc(loc), op(sum), flipped(flipped), target(target), channels(sum.outputChannels),
        lanes(target.lanes(sum.element.getIntOrFloatBitWidth())) {}

  Stage emit() {
    plan();
    StageFunction stage = StageFunction::create(module, name, loc);
    stage.forEachTask([&](OpBuilder &b, Value task) { emitTask(stage, b, task); });
    std::string text = std::to_string(tileRows) + " x " + std::to_string(std::min(groupWidth, channels));
    return {name, blocks * groupBlocks, imagesPerTask, text};
  }

private:
  // ---- Planning ----

  void plan() {
    int64_t width = 0, height = 0, steps = 0;
    for (const WindowSum::Phase &phase : op.phases) {
      width = std::max(width, phase.width.outputs);
      height = std::max(height, phase.height.outputs);
      steps += phase.height.outputs * phase.width.outputs * std::max<int64_t>(1, phase.taps());
      tileRows = std::max(tileRows, mostRows(phase.width));
    }
    tileRows = std::min(tileRows, width);
    int64_t vectors = llvm::divideCeil(channels, lanes);
    groupWidth = std::clamp<int64_t>(enoughSums / tileRows, 1, vectors) * lanes;
    fullGroups = channels / groupWidth;
    groupsOfStrip = std::max<int64_t>(1, bytesOfStrip * 8 / (groupWidth * op.element.getIntOrFloatBitWidth()));
    int64_t groups = llvm::divideCeil(channels, groupWidth);

    int64_t perImage = steps * vectors, wanted = std::max<int64_t>(1, perImage / stepsOfTask);
    rowsOfBlock = llvm::divideCeil(height, std::min(wanted, height));
    blocks = llvm::divideCeil(height, rowsOfBlock);
    groupsOfBlock = llvm::divideCeil(groups, std::clamp<int64_t>(wanted / blocks, 1, groups));
    groupsOfBlock = int64_t(llvm::alignTo(groupsOfBlock, groupsOfStrip)); // tasks write whole cache lines
    groupBlocks = llvm::divideCeil(groups, groupsOfBlock);
    imagesPerTask = std::clamp<int64_t>(stepsOfTask / perImage, 1, std::max<int64_t>(1, op.rows / 32));
  }

  // Neighboring pixels share vectors of the image if their taps overlap, which stay in registers.
  int64_t mostRows(const WindowAxis &axis) const {
    int64_t registers = target.numVectorRegisters - 2; // one vector of weights, one for what else is live
    int64_t rows = sharesVectors(axis) ? (registers - axis.taps + 1) / 2 : registers - enoughSums / 2;
    return std::clamp<int64_t>(rows, 4, 12);
  }

  bool sharesVectors(const WindowAxis &axis) const {
    return axis.inputStep == 1 && axis.tapStep == 1 && axis.taps < target.numVectorRegisters / 2;
  }

  ChannelTile tileOf(int64_t pixels, int64_t width) const {
    ChannelTile tile{pixels, {}, {}, {}};
    for (int64_t first = 0; first < width; first += lanes) {
      int64_t elements = std::min(lanes, width - first);
      tile.types.push_back(VectorType::get({int64_t(llvm::PowerOf2Ceil(elements))}, op.element));
      tile.offsets.push_back(first);
      tile.elements.push_back(elements);
    }
    return tile;
  }

  // ---- Emission ----

  void emitTask(StageFunction &stage, OpBuilder &b, Value task) {
    IndexMath math{b, loc};
    Value rest = math.rem(task, blocks * groupBlocks);
    Value firstGroup = math.mul(math.rem(rest, groupBlocks), groupsOfBlock);
    Value j0 = math.mul(math.div(rest, groupBlocks), rowsOfBlock), j1 = math.add(j0, rowsOfBlock);
    Value firstImage = math.mul(math.div(task, blocks * groupBlocks), imagesPerTask);
    Value lastImage = math.min(math.add(firstImage, imagesPerTask), stage.rows);
    Value lastGroup = math.add(firstGroup, groupsOfBlock), full = math.constant(fullGroups);
    int64_t tail = channels % groupWidth;
    loopOver(b, loc, firstImage, lastImage, 1, [&](OpBuilder &body, Value image) {
      if (fullGroups)
        loopOver(body, loc, firstGroup, IndexMath{body, loc}.min(lastGroup, full), groupsOfStrip,
                 [&](OpBuilder &inner, Value group) {
                   IndexMath inside{inner, loc};
                   Value end = inside.min(inside.min(lastGroup, full), inside.add(group, groupsOfStrip));
                   emitRows(stage, inner, image, j0, j1, group, end, groupWidth);
                 });
      if (tail)
        ifThen(body, loc, IndexMath{body, loc}.less(full, lastGroup), [&](OpBuilder &inner) {
          emitRows(stage, inner, image, j0, j1, full, IndexMath{inner, loc}.add(full, 1), tail);
        });
    });
  }

  // State shared by the tiles of one row of outputs.
  struct Row {
    const WindowSum::Phase &phase;
    Value image, j, channel;
    Value tap0, tap1;     // valid taps along the height; null: all of them
    Value input, weights; // address of the image's row under tap 0, and of the weights of tap (0, 0)
  };

  // The groups of a strip, each `width` channels wide.
  void emitRows(StageFunction &stage, OpBuilder &b, Value image, Value j0, Value j1, Value group, Value endGroup,
                int64_t width) {
    for (const WindowSum::Phase &phase : op.phases) {
      IndexMath math{b, loc};
      Value end = math.min(j1, math.constant(phase.height.outputs));
      loopOver(b, loc, j0, end, 1, [&](OpBuilder &rows, Value j) {
        loopOver(rows, loc, group, endGroup, 1, [&](OpBuilder &body, Value its) {
          Row row = rowAt(stage, body, phase, image, j, IndexMath{body, loc}.mul(its, groupWidth));
          for (const TileRun &run : tileRuns(phase.width, tileRows))
            forEachTile(body, loc, run, [&](OpBuilder &inner, Value pixel) {
              emitTile(stage, inner, row, run, tileOf(run.size, width), pixel);
            });
        });
      });
    }
  }

  Row rowAt(StageFunction &stage, OpBuilder &b, const WindowSum::Phase &phase, Value image, Value j, Value channel) {
    IndexMath math{b, loc};
    const WindowAxis &h = phase.height, &w = phase.width;
    Row row{phase, image, j, channel, {}, {}, {}, {}};
    Value place = inputPlace(b, loc, h, j);
    std::tie(row.tap0, row.tap1) = validTapsAt(b, loc, h, place);
    Value offset = math.mul(math.add(math.mul(image, h.inputSize), place), w.inputSize * channels);
    row.input = address(b, stage.buffer(op.input.buffer), math.add(math.add(offset, channel), op.input.offset));
    int64_t first = kernelPlace(h) * w.kernel + kernelPlace(w);
    row.weights = address(b, stage.buffer(op.weights.buffer), math.add(channel, op.weights.offset + first * channels));
    return row;
  }

  // The place of tap 0 in the kernel, and the distance to that of the next tap.
  int64_t kernelPlace(const WindowAxis &axis) const {
    return flipped ? axis.kernel - 1 - axis.kernelStart : axis.kernelStart;
  }
  int64_t kernelStep(const WindowAxis &axis) const { return flipped ? -axis.kernelStep : axis.kernelStep; }

  void emitTile(StageFunction &stage, OpBuilder &b, const Row &row, const TileRun &run, const ChannelTile &tile,
                Value pixel) {
    const WindowAxis &h = row.phase.height, &w = row.phase.width;
    IndexMath math{b, loc};
    Value oh = math.add(math.mul(row.j, h.outputStep), h.outputStart);
    auto forEachVector = [&](llvm::function_ref<void(size_t sum, size_t vector, ArrayRef<Value> index)> body) {
      for (int64_t r = 0; r < tile.pixels; ++r)
        for (size_t v = 0; v < tile.vectors(); ++v) {
          Value ow = math.add(math.mul(math.add(pixel, r), w.outputStep), w.outputStart);
          body(r * tile.vectors() + v, v, {row.image, math.add(row.channel, tile.offsets[v]), oh, ow});
        }
    };
    if (op.epilogue.prefetch)
      forEachVector([&](size_t, size_t, ArrayRef<Value> index) { op.epilogue.prefetch(stage, b, loc, index); });
    Sums sums = sumOverWindow(b, row, run, tile, pixel);
    forEachVector([&](size_t sum, size_t v, ArrayRef<Value> index) {
      op.epilogue.store(stage, b, loc, index, firstLanes(b, loc, sums[sum], tile.elements[v]));
    });
  }

  Sums sumOverWindow(OpBuilder &b, const Row &row, const TileRun &run, const ChannelTile &tile, Value pixel) {
    const WindowAxis &h = row.phase.height, &w = row.phase.width;
    Sums zeros;
    for (int64_t r = 0; r < tile.pixels; ++r)
      for (VectorType type : tile.types)
        zeros.push_back(b.create<arith::ConstantOp>(loc, b.getZeroAttr(type)));
    Value corner = address(b, row.input, IndexMath{b, loc}.mul(inputPlace(b, loc, w, pixel), channels));
    int64_t inputRow = h.tapStep * w.inputSize * channels, kernelRow = kernelStep(h) * w.kernel * channels;
    Value tap0 = row.tap0 ? row.tap0 : constantI64(b, loc, 0), tap1 = row.tap1 ? row.tap1 : constantI64(b, loc, h.taps);
    return accumulateOver(b, loc, tap0, tap1, 1, zeros, [&](OpBuilder &body, Value tap, Sums &sums) {
      IndexMath math{body, loc};
      Value input = address(body, corner, math.mul(tap, inputRow));
      Value weights = address(body, row.weights, math.mul(tap, kernelRow));
      for (int64_t across = 0; across < w.taps; ++across)
        addTap(body, w, run, tile, across, input, weights, sums);
    });
  }

  void addTap(OpBuilder &b, const WindowAxis &w, const TileRun &run, const ChannelTile &tile, int64_t tap, Value input,
              Value weights, Sums &sums) {
    Value image = address(b, input, tap * w.tapStep * channels);
    Value weight = address(b, weights, tap * kernelStep(w) * channels);
    if (!sharesVectors(w))
      image = launder(b, loc, image);
    for (size_t v = 0; v < tile.vectors(); ++v) {
      auto load = [&](Value from, int64_t offset) {
        return loadFirstLanes(b, loc, tile.types[v], address(b, from, offset + tile.offsets[v]), tile.elements[v]);
      };
      Value factor = load(weight, 0);
      for (int64_t r = 0; r < tile.pixels; ++r)
        if (Value &sum = sums[r * tile.vectors() + v]; run.first[r] <= tap && tap < run.last[r])
          sum = b.create<vector::FMAOp>(loc, load(image, r * w.inputStep * channels), factor, sum);
    }
  }

  Value address(OpBuilder &b, Value base, Value offset) { return elementAddress(b, loc, op.element, base, offset); }
  Value address(OpBuilder &b, Value base, int64_t offset) { return elementAddress(b, loc, op.element, base, offset); }

  StageModule module;
  std::string name;
  Location loc;
  const WindowSum &op;
  bool flipped;
  const Target &target;
  int64_t channels, lanes;

  int64_t tileRows = 1, groupWidth = 1, fullGroups = 0, groupsOfStrip = 1;                    // of channels
  int64_t blocks = 1, rowsOfBlock = 1, groupBlocks = 1, groupsOfBlock = 1, imagesPerTask = 1; // of tasks
};

} // namespace

Stage emitDepthwiseWindow(const StageModule &module, llvm::StringRef name, Location loc, const WindowSum &sum,
                          bool flipped, const Target &target) {
  return DepthwiseEmitter(module, name, loc, sum, flipped, target).emit();
}

} // namespace sluice::cpu
