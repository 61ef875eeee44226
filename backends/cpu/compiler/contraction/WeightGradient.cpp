// The weight gradient of a convolution: dW[kh, kw, c, o] = sum over images and pixels of x[pixel under tap, c] *
// dY[pixel, o].
//
// A register tile is a few rows (kh, kw, c) of dW times a group of output channels; its steps are pixels. The batch is
// cut into chunks, a number given by the shape, each with its own partial dW in the workspace; a stage behind adds them
// in order. Within a chunk a few images at a time stay in the cache while all tiles of dW pass over them.
//
// Where c is long, loops run over the taps and tiles are cut from the contiguous run of x that a tap (or, without
// padding along the width, a row of taps) reads. Where c is short and the window leaves the image, or the whole window
// fits one tile, the rows of every tile are known when the code is generated, and so are the pixels that each may read.
#include "backends/cpu/compiler/VectorAccess.h"
#include "backends/cpu/compiler/contraction/ConvolutionShape.h"
#include "backends/cpu/compiler/contraction/IndexMath.h"
#include "backends/cpu/compiler/contraction/SumPartials.h"
#include "backends/cpu/compiler/contraction/Tile.h"
#include "backends/cpu/compiler/contraction/TileChoice.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

namespace sluice::cpu {

using namespace mlir;

namespace {

// Pixels [begin, end) along one axis for which the same taps are inside the image.
struct Segment {
  int64_t begin, end;
  SmallVector<bool> validTaps;
};

SmallVector<Segment> segments(const Convolution::Axis &axis, ArrayRef<int64_t> taps) {
  SmallVector<Segment> result;
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

bool leavesImage(const Convolution::Axis &axis) {
  int64_t last = (axis.output() - 1) * axis.stride + (axis.kernel - 1) * axis.dilation - axis.padBefore;
  return axis.padBefore > 0 || last >= axis.input;
}

class WeightGradientEmitter {
public:
  WeightGradientEmitter(ModuleOp module, llvm::StringRef name, Location loc, const Convolution &op,
                        const Target &target)
      : module(module), name(name), loc(loc), op(op), h(op.height), w(op.width), target(target),
        lanes(target.lanes(op.element.getIntOrFloatBitWidth())), vector(VectorType::get({lanes}, op.element)) {}

  Contraction emit() {
    plan();
    StageFunction stage = StageFunction::create(module, name + "_chunks", loc);
    stage.forEachTask([&](OpBuilder &b, Value task) { emitTask(stage, b, task); });
    Contraction result;
    result.stages.push_back({name + "_chunks", parts * groups.count(), partials.rowsPerChunk});
    result.stages.push_back(emitSumPartials(module, name + "_sum", loc, partials, target,
                                            [&](StageFunction &sumStage, OpBuilder &b, Location, Value row,
                                                Value column, Value sums) { finish(sumStage, b, row, column, sums); }));
    int64_t chunks = llvm::divideCeil(op.rows, partials.rowsPerChunk);
    result.workspaceBytes = chunks * partials.elementsPerChunk() * elementBytes();
    describeConvolution(op, op.outputChannels, target, result);
    return result;
  }

private:
  int64_t elementBytes() const { return op.element.getIntOrFloatBitWidth() / 8; }
  int64_t channels() const { return op.inputChannels; }
  int64_t windowRows() const { return h.kernel * w.kernel * channels(); }

  // ---- Planning ----

  void plan() {
    acrossTaps = !leavesImage(w) && w.dilation == 1;
    runLength = acrossTaps ? w.kernel * channels() : channels();
    runsPerTapRow = acrossTaps ? 1 : w.kernel;
    int64_t onePass = maxTileRows(std::min<int64_t>(4, llvm::divideCeil(op.outputChannels, lanes)), target);
    staticTiles = windowRows() <= onePass || (channels() < 5 && (leavesImage(w) || leavesImage(h) || runLength < 5));

    TileProblem problem;
    problem.elementBits = op.element.getIntOrFloatBitWidth();
    problem.rows = staticTiles ? windowRows() : runLength;
    problem.evenRows = staticTiles;
    problem.columns = op.outputChannels;
    problem.depth = h.output() * w.output();
    groups = chooseTiles(problem, target);
    planImages();
    planChunks();
  }

  // Enough images at a time for a tile to be worth loading, few enough to stay in the cache.
  void planImages() {
    int64_t pixels = h.output() * w.output();
    int64_t bytes = (h.input * w.input * channels() + pixels * op.outputChannels) * elementBytes();
    prefetchOutput = bytes > target.l1;
    int64_t fitting = std::max<int64_t>(1, target.l1 / 2 / bytes);
    int64_t worthwhile = std::min<int64_t>(llvm::divideCeil(64, pixels), std::max<int64_t>(1, target.l2 / 2 / bytes));
    imagesAtOnce = std::max(fitting, worthwhile);
    pixelRowsAtOnce = h.output();
    if (bytes > target.l2 / 4) {
      int64_t rowBytes = (h.stride * w.input * channels() + w.output() * op.outputChannels) * elementBytes();
      int64_t worthwhileRows = llvm::divideCeil(160, w.output());
      pixelRowsAtOnce = std::min(pixelRowsAtOnce, std::max(worthwhileRows, target.l2 / 16 / rowBytes));
    }
    if (staticTiles && windowRows() <= tileRowsOfGroups()) { // the only tile keeps its sums
      imagesAtOnce = op.rows;
      pixelRowsAtOnce = h.output();
    }
  }

  int64_t tileRowsOfGroups() const { return groups.full ? groups.rows : groups.tailRows; }

  void planChunks() {
    partials.element = op.element;
    partials.place = op.workspace;
    partials.rows = windowRows();
    partials.columns = op.outputChannels;
    partials.width = llvm::alignTo(op.outputChannels, lanes);
    constexpr int64_t mostWorkspace = 16 << 20;
    int64_t fitting = std::max<int64_t>(1, mostWorkspace / (partials.elementsPerChunk() * elementBytes()));
    int64_t chunks = std::min<int64_t>({16, fitting, op.rows});
    partials.rowsPerChunk = llvm::divideCeil(op.rows, chunks);
    // Each part of the rows reads all images again; where that is cheap, its part of dW stays closer.
    parts = 1;
    int64_t work = 2 * multiplyAddsPerImage(op) * partials.rowsPerChunk / groups.count();
    if (!staticTiles && (chunks * groups.count() < 32 || work / h.kernel > (4 << 20)))
      parts = h.kernel;
    imagesAtOnce = std::min(imagesAtOnce, partials.rowsPerChunk);
  }

  // ---- Emission ----

  // What one task works on.
  struct Work {
    Value part;           // of the rows of taps
    Value chunk;          // which partial result
    Value image0, image1; // its images
    Value column;         // first output channel
    int64_t columns, tileRows;
  };

  void emitTask(StageFunction &stage, OpBuilder &b, Value task) {
    IndexMath math{b, loc};
    int64_t perChunk = parts * groups.count();
    Work work;
    work.chunk = math.div(task, perChunk);
    Value rest = math.rem(task, perChunk);
    Value group = math.div(rest, parts);
    work.part = math.rem(rest, parts);
    work.image0 = math.mul(work.chunk, partials.rowsPerChunk);
    work.image1 = math.min(math.add(work.image0, partials.rowsPerChunk), stage.rows);
    work.column = math.mul(group, groups.width);
    auto emitFor = [&](OpBuilder &body, int64_t columns, int64_t tileRows) {
      Work mine = work;
      mine.columns = columns, mine.tileRows = tileRows;
      emitChunk(stage, body, mine);
    };
    if (!groups.tail)
      return emitFor(b, groups.width, groups.rows);
    if (!groups.full)
      return emitFor(b, groups.tail, groups.tailRows);
    Value full = math.less(group, math.constant(groups.full));
    ifThenElse(
        b, loc, full, [&](OpBuilder &then) { emitFor(then, groups.width, groups.rows); },
        [&](OpBuilder &otherwise) { emitFor(otherwise, groups.tail, groups.tailRows); });
  }

  void emitChunk(StageFunction &stage, OpBuilder &b, const Work &work) {
    loopOver(b, loc, work.image0, work.image1, imagesAtOnce, [&](OpBuilder &body, Value first) {
      IndexMath math{body, loc};
      Block block{first, math.min(math.add(first, imagesAtOnce), work.image1), {}, {}};
      if (pixelRowsAtOnce == h.output())
        return emitBlock(stage, body, work, block);
      loopOver(body, loc, math.constant(0), math.constant(h.output()), pixelRowsAtOnce,
               [&](OpBuilder &inner, Value oh) {
                 block.row0 = oh;
                 block.row1 = IndexMath{inner, loc}.add(oh, pixelRowsAtOnce);
                 emitBlock(stage, inner, work, block);
               });
    });
  }

  // What all tiles pass over before the next is touched: some images, or some rows of pixels of one.
  struct Block {
    Value image0, image1;
    Value row0, row1; // null: all
  };

  void emitBlock(StageFunction &stage, OpBuilder &b, const Work &work, const Block &block) {
    if (staticTiles)
      emitStaticTiles(stage, b, work, block);
    else
      emitRuns(stage, b, work, block);
  }

  // Loads a tile's sums, or starts them at the chunk's first image; then `add`s to them and stores them.
  void updateTile(StageFunction &stage, OpBuilder &b, const Work &work, const Tile &tile, Value row, const Block &block,
                  llvm::function_ref<Sums(OpBuilder &, Sums)> add) {
    IndexMath math{b, loc};
    Value at = math.add(math.mul(row, partials.width), work.column);
    at = math.add(math.add(at, math.mul(work.chunk, partials.elementsPerChunk())), partials.place.offset);
    Value place = address(b, stage.buffer(partials.place.buffer), at);
    Sums sums;
    if (imagesAtOnce >= partials.rowsPerChunk && !block.row0) {
      sums = tile.zeros(b);
    } else {
      SmallVector<Type> types(tile.rows() * tile.vectors(), vector);
      Value before = math.sub(block.image0, work.image0);
      if (block.row0)
        before = math.add(before, block.row0);
      auto branch = b.create<scf::IfOp>(loc, types, math.less(math.constant(0), before), /*withElseRegion=*/true);
      OpBuilder later = branch.getThenBodyBuilder(), start = branch.getElseBodyBuilder();
      later.create<scf::YieldOp>(loc, ValueRange(tile.load(later, place, partials.width)));
      start.create<scf::YieldOp>(loc, ValueRange(tile.zeros(start)));
      sums.assign(branch.getResults().begin(), branch.getResults().end());
    }
    tile.store(b, add(b, sums), place, partials.width);
  }

  // ---- Tiles cut from contiguous runs, in loops over the taps ----

  void emitRuns(StageFunction &stage, OpBuilder &b, const Work &work, const Block &block) {
    IndexMath math{b, loc};
    Value kh0 = parts == 1 ? math.constant(0) : work.part;
    Value kh1 = parts == 1 ? math.constant(h.kernel) : math.add(work.part, 1);
    loopOver(b, loc, kh0, kh1, 1, [&](OpBuilder &overHeight, Value kh) {
      loopOver(overHeight, loc, math.constant(0), math.constant(runsPerTapRow), 1, [&](OpBuilder &body, Value kw) {
        int64_t whole = runLength / work.tileRows * work.tileRows;
        loopOver(body, loc, math.constant(0), math.constant(whole), work.tileRows,
                 [&](OpBuilder &tiles, Value c) { emitRunTile(stage, tiles, work, block, kh, kw, c, work.tileRows); });
        if (whole != runLength)
          emitRunTile(stage, body, work, block, kh, kw, IndexMath{body, loc}.constant(whole), runLength - whole);
      });
    });
  }

  // Pixels [begin, end) that tap `k` finds inside the image.
  std::pair<Value, Value> validPixels(OpBuilder &b, const Convolution::Axis &axis, Value k) {
    IndexMath math{b, loc};
    if (!leavesImage(axis))
      return {math.constant(0), math.constant(axis.output())};
    Value zero = math.constant(0);
    Value shift = math.sub(math.constant(axis.padBefore), math.mul(k, axis.dilation)); // in = out * stride - shift
    Value begin = math.ceilDiv(math.max(zero, shift), axis.stride);
    Value end = math.ceilDiv(math.max(zero, math.add(shift, axis.input)), axis.stride);
    end = math.min(math.constant(axis.output()), end);
    return {begin, end};
  }

  void emitRunTile(StageFunction &stage, OpBuilder &b, const Work &work, const Block &block, Value kh, Value kw,
                   Value c, int64_t rows) {
    IndexMath math{b, loc};
    Tile tile(loc, vector, rows, work.columns, /*wholeVectors=*/false);
    if (prefetchOutput)
      tile.prefetchB(prefetchSteps * op.outputChannels);
    auto [oh0, oh1] = validPixels(b, h, kh);
    std::pair<Value, Value> across = {math.constant(0), math.constant(w.output())};
    if (!acrossTaps)
      across = validPixels(b, w, kw);
    Value row = math.add(math.mul(math.add(math.mul(kh, runsPerTapRow), kw), runLength), c);
    // x under the tap at pixel (0, 0)
    Value corner = math.mul(math.add(math.mul(kh, h.dilation), -h.padBefore), w.input);
    Value across0 = !acrossTaps ? math.mul(kw, w.dilation) : math.constant(0);
    corner = math.add(math.mul(math.add(math.add(corner, across0), -w.padBefore), channels()), c);
    SmallVector<int64_t> offsets(llvm::to_vector(llvm::seq<int64_t>(0, rows)));
    updateTile(stage, b, work, tile, row, block, [&](OpBuilder &at, Sums sums) {
      return addPixels(stage, at, tile, work, block, corner, offsets, oh0, oh1, across.first, across.second, sums);
    });
  }

  // ---- Tiles whose rows are known here ----

  void emitStaticTiles(StageFunction &stage, OpBuilder &b, const Work &work, const Block &block) {
    int64_t tiles = llvm::divideCeil(windowRows(), work.tileRows);
    for (int64_t t = 0, start = 0; t < tiles; ++t) {
      int64_t size = windowRows() / tiles + (t < windowRows() % tiles);
      emitStaticTile(stage, b, work, block, start, size);
      start += size;
    }
  }

  void emitStaticTile(StageFunction &stage, OpBuilder &b, const Work &work, const Block &block, int64_t start,
                      int64_t size) {
    Tile tile(loc, vector, size, work.columns, /*wholeVectors=*/false);
    if (prefetchOutput)
      tile.prefetchB(prefetchSteps * op.outputChannels);
    SmallVector<int64_t> tapsHeight, tapsWidth, offsets;
    for (int64_t row = start; row < start + size; ++row) {
      int64_t kw = row / channels() % w.kernel, kh = row / channels() / w.kernel;
      tapsHeight.push_back(kh);
      tapsWidth.push_back(kw);
      offsets.push_back(((kh * h.dilation - h.padBefore) * w.input + kw * w.dilation - w.padBefore) * channels() +
                        row % channels());
    }
    IndexMath math{b, loc};
    updateTile(stage, b, work, tile, math.constant(start), block, [&](OpBuilder &at, Sums sums) {
      for (const Segment &down : segments(h, tapsHeight))
        for (const Segment &across : segments(w, tapsWidth)) {
          SmallVector<int64_t> valid(size, notRead);
          for (int64_t r = 0; r < size; ++r)
            if (down.validTaps[tapsHeight[r]] && across.validTaps[tapsWidth[r]])
              valid[r] = offsets[r];
          if (llvm::any_of(valid, [](int64_t offset) { return offset != notRead; }))
            sums = addPixels(stage, at, tile, work, block, math.constant(0), valid, math.constant(down.begin),
                             math.constant(down.end), math.constant(across.begin), math.constant(across.end), sums);
        }
      return sums;
    });
  }

  // ---- Steps ----

  static constexpr int64_t notRead = INT64_MIN;

  // Adds the pixels [oh0, oh1) x [ow0, ow1) of the images [first, last). Row r of the tile reads x at `corner` +
  // offsets[r] plus the pixel's place.
  Sums addPixels(StageFunction &stage, OpBuilder &b, const Tile &tile, const Work &work, const Block &block,
                 Value corner, ArrayRef<int64_t> offsets, Value oh0, Value oh1, Value ow0, Value ow1, Sums sums) {
    IndexMath math{b, loc};
    if (block.row0) {
      oh0 = math.max(oh0, block.row0);
      oh1 = math.min(oh1, block.row1);
    }
    Value x = address(b, stage.buffer(op.input.buffer), math.add(corner, op.input.offset));
    Value dY = address(b, stage.buffer(op.output.buffer), math.add(work.column, op.output.offset));
    return accumulateOver(
        b, loc, block.image0, block.image1, 1, sums, [&](OpBuilder &images, Value image, Sums &ofImage) {
          IndexMath perImage{images, loc};
          Value xImage = address(images, x, perImage.mul(image, h.input * w.input * channels()));
          Value dYImage = address(images, dY, perImage.mul(image, h.output() * w.output() * op.outputChannels));
          ofImage = accumulateOver(images, loc, oh0, oh1, 1, ofImage, [&](OpBuilder &down, Value oh, Sums &ofRow) {
            IndexMath perRow{down, loc};
            Value xRow = address(down, xImage, perRow.mul(oh, h.stride * w.input * channels()));
            Value dYRow = address(down, dYImage, perRow.mul(oh, w.output() * op.outputChannels));
            ofRow = accumulateOver(down, loc, ow0, ow1, 1, ofRow, [&](OpBuilder &across, Value ow, Sums &ofPixel) {
              IndexMath perPixel{across, loc};
              Value xPixel = address(across, xRow, perPixel.mul(ow, w.stride * channels()));
              SmallVector<Value> rows;
              for (int64_t offset : offsets)
                rows.push_back(offset == notRead ? Value() : elementAddress(across, loc, op.element, xPixel, offset));
              tile.multiplyAdd(across, ofPixel, rows, address(across, dYRow, perPixel.mul(ow, op.outputChannels)));
            });
          });
        });
  }

  void finish(StageFunction &stage, OpBuilder &b, Value row, Value column, Value sums) {
    IndexMath math{b, loc};
    if (op.epilogue) {
      Value tap = math.div(row, channels());
      return op.epilogue(stage, b, loc,
                         {column, math.rem(row, channels()), math.div(tap, w.kernel), math.rem(tap, w.kernel)}, sums);
    }
    Value at = math.add(math.mul(math.div(column, op.panel), windowRows() * op.panel), math.mul(row, op.panel));
    at = math.add(math.add(at, math.rem(column, op.panel)), op.weights.offset);
    storeVector(b, loc, sums, address(b, stage.buffer(op.weights.buffer), at));
  }

  Value address(OpBuilder &b, Value base, Value offset) { return elementAddress(b, loc, op.element, base, offset); }

  ModuleOp module;
  std::string name;
  Location loc;
  const Convolution &op;
  const Convolution::Axis &h, &w;
  const Target &target;
  int64_t lanes;
  VectorType vector;

  bool staticTiles = false;
  bool acrossTaps = false;                  // a row of taps reads one contiguous run of x
  int64_t runLength = 1, runsPerTapRow = 1; // contiguous rows of dW under one address; how many make a row of taps
  int64_t imagesAtOnce = 1, pixelRowsAtOnce = 1, parts = 1;
  bool prefetchOutput = false; // dY does not stay in the first-level cache
  ColumnGroups groups;
  Partials partials;
};

} // namespace

Contraction emitConvolutionWeightGradient(ModuleOp module, llvm::StringRef name, Location loc, const Convolution &op,
                                          const Target &target) {
  return WeightGradientEmitter(module, name, loc, op, target).emit();
}

} // namespace sluice::cpu
