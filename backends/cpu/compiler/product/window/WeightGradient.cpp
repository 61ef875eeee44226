// The weight gradient of a convolution: dW[kh, kw, c, o] = sum over images and pixels of x[pixel under tap, c] *
// dY[pixel, o].
//
// A register tile is a few rows (kh, kw, c) of dW times a group of output channels; its steps are pixels. The batch is
// split into chunks, whose number follows from the shape, each with a partial dW in the workspace; a later stage adds
// them in order. Within a chunk a few images at a time stay in the cache while all tiles of dW pass over them. Every
// sum iterates over the chunk's images, their rows and their pixels in order, however tiles and blocks are split.
//
// Where c is long, loops run over the taps and tiles are cut from the contiguous run of x that a tap (or, without
// padding along the width, a row of taps) reads. Where c is short and the window leaves the image, or the whole window
// fits one tile, the rows of every tile are known when the code is generated, and so are the pixels that each may read.
//
// If both pixels have many channels, a task copies those of a block for each tile, because they would evict each other
// from the cache (PixelCopies.h).
//
// If the last output channels would fill only a small part of a vector, separate tasks compute them with lanes along
// the runs of x.
#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"
#include "backends/cpu/compiler/product/tile/Tile.h"
#include "backends/cpu/compiler/product/window/ConvolutionShape.h"
#include "backends/cpu/compiler/product/window/PixelCopies.h"
#include "backends/cpu/compiler/product/window/PixelWalk.h"
#include "backends/cpu/compiler/product/window/WeightGradientPlan.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

namespace sluice::cpu {

using namespace mlir;

namespace {

class WeightGradientEmitter {
public:
  WeightGradientEmitter(const StageModule &module, llvm::StringRef name, Location loc, const Convolution &op,
                        const Target &target)
      : module(module), name(name), loc(loc), op(op), target(target),
        lanes(target.lanes(op.element.getIntOrFloatBitWidth())), vector(VectorType::get({lanes}, op.element)),
        plan(op, target), partials(plan.partials), groups(plan.groups),
        read(plan.copies ? copiedPixels(op, plan.tileRows(), groups.width) : op), h(read.height), w(read.width) {}

  Contraction emit() {
    StageFunction stage = StageFunction::create(module, name + "_chunks", loc);
    stage.forEachTask([&](OpBuilder &b, Value task) { emitTask(stage, b, task); });
    Contraction result;
    result.stages.push_back({name + "_chunks", tasksPerChunk(), partials.rowsPerChunk, groups.text()});
    result.stages.push_back(emitSumPartials(module, name + "_sum", loc, partials, target,
                                            [&](StageFunction &sumStage, OpBuilder &b, Location, Value row,
                                                Value column, Value sums) { finish(sumStage, b, row, column, sums); }));
    int64_t chunks = llvm::divideCeil(op.rows, partials.rowsPerChunk);
    result.workspaceBytes = chunks * partials.elementsPerChunk() * elementBytes();
    describeConvolution(op, op.outputChannels, target, result);
    result.lanes = plan.lanes;
    return result;
  }

private:
  int64_t elementBytes() const { return op.element.getIntOrFloatBitWidth() / 8; }
  int64_t channels() const { return op.inputChannels; }
  int64_t windowRows() const { return h.kernel * w.kernel * channels(); }

  // The narrow channels are one more group.
  int64_t tasksPerChunk() const {
    return plan.parts * (llvm::divideCeil(groups.count(), plan.groupsPerTask) + (plan.narrow != 0));
  }

  // ---- Emission ----

  // The work of one task.
  struct Work {
    Value part;           // of the rows of taps
    Value chunk;          // number of the partial result
    Value image0, image1; // its images
    Value column;         // first output channel
    int64_t columns, tileRows;
  };

  // Where a tile reads its rows of x and its columns of dY: addresses at the first pixel of all.
  struct Operands {
    Value x, dY;
  };

  void emitTask(StageFunction &stage, OpBuilder &b, Value task) {
    IndexMath math{b, loc};
    Work work;
    work.chunk = math.div(task, tasksPerChunk());
    Value rest = math.rem(task, tasksPerChunk());
    Value group = math.mul(math.div(rest, plan.parts), plan.groupsPerTask);
    work.part = math.rem(rest, plan.parts);
    work.image0 = math.mul(work.chunk, partials.rowsPerChunk);
    work.image1 = math.min(math.add(work.image0, partials.rowsPerChunk), stage.rows);
    work.column = math.mul(group, groups.width);
    if (plan.copies)
      return emitCopied(stage, b, work, group);
    if (!plan.narrow)
      return emitWide(stage, b, work, group);
    ifThenElse(
        b, loc, math.less(group, math.constant(groups.count())),
        [&](OpBuilder &wide) { emitWide(stage, wide, work, group); },
        [&](OpBuilder &narrow) { emitNarrow(stage, narrow, work); });
  }

  void emitWide(StageFunction &stage, OpBuilder &b, const Work &work, Value group) {
    IndexMath math{b, loc};
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

  void forEachBlock(OpBuilder &b, const Work &work, llvm::function_ref<void(OpBuilder &, const PixelBlock &)> emit) {
    loopOver(b, loc, work.image0, work.image1, plan.imagesAtOnce, [&](OpBuilder &body, Value first) {
      IndexMath math{body, loc};
      PixelBlock block{first, math.min(math.add(first, plan.imagesAtOnce), work.image1), {}, {}};
      if (plan.pixelRowsAtOnce == h.output())
        return emit(body, block);
      loopOver(body, loc, math.constant(0), math.constant(h.output()), plan.pixelRowsAtOnce,
               [&](OpBuilder &inner, Value oh) {
                 block.row0 = oh;
                 block.row1 = IndexMath{inner, loc}.add(oh, plan.pixelRowsAtOnce);
                 emit(inner, block);
               });
    });
  }

  void emitChunk(StageFunction &stage, OpBuilder &b, const Work &work) {
    forEachBlock(b, work, [&](OpBuilder &body, const PixelBlock &block) {
      if (plan.staticTiles)
        emitStaticTiles(stage, body, work, block);
      else
        emitRuns(stage, body, work, block);
    });
  }

  // The address of one element of the task's partial result.
  Value partialAt(StageFunction &stage, OpBuilder &b, const Work &work, Value row, Value column) {
    IndexMath math{b, loc};
    Value at = math.add(math.mul(row, partials.width), column);
    at = math.add(math.add(at, math.mul(work.chunk, partials.elementsPerChunk())), partials.place.offset);
    return address(b, stage.buffer(partials.place.buffer), at);
  }

  // Loads a tile's sums, or starts them at the chunk's first image; then `add`s to them and stores them.
  void updateTile(StageFunction &stage, OpBuilder &b, const Work &work, const Tile &tile, Value row,
                  const PixelBlock &block, llvm::function_ref<Sums(OpBuilder &, Sums)> add) {
    IndexMath math{b, loc};
    Value place = partialAt(stage, b, work, row, work.column);
    Sums sums;
    if (plan.imagesAtOnce >= partials.rowsPerChunk && !block.row0) {
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

  // The task's rows of taps.
  std::pair<Value, Value> tapRows(OpBuilder &b, const Work &work) {
    IndexMath math{b, loc};
    if (plan.parts == 1)
      return {math.constant(0), math.constant(h.kernel)};
    return {work.part, math.add(work.part, 1)};
  }

  void forEachRun(OpBuilder &b, const Work &work, llvm::function_ref<void(OpBuilder &, Value kh, Value kw)> body) {
    auto [kh0, kh1] = tapRows(b, work);
    loopOver(b, loc, kh0, kh1, 1, [&](OpBuilder &overHeight, Value kh) {
      IndexMath inside{overHeight, loc};
      loopOver(overHeight, loc, inside.constant(0), inside.constant(plan.runsPerTapRow), 1,
               [&](OpBuilder &inner, Value kw) { body(inner, kh, kw); });
    });
  }

  void emitRuns(StageFunction &stage, OpBuilder &b, const Work &work, const PixelBlock &block) {
    int64_t whole = plan.runLength / work.tileRows * work.tileRows;
    forEachRun(b, work, [&](OpBuilder &body, Value kh, Value kw) {
      auto emitTile = [&](OpBuilder &tile, Value c, int64_t rows) {
        emitRunTile(stage, tile, work, block, kh, kw, c, rows, operandsAt(stage, tile, c, work.column));
      };
      IndexMath math{body, loc};
      loopOver(body, loc, math.constant(0), math.constant(whole), work.tileRows,
               [&](OpBuilder &tiles, Value c) { emitTile(tiles, c, work.tileRows); });
      if (whole != plan.runLength)
        emitTile(body, math.constant(whole), plan.runLength - whole);
    });
  }

  // ---- Tiles that read copies of the pixels ----

  // Calls `emit` for each of the task's groups of columns, with its number in the task and its first column.
  void forEachGroup(OpBuilder &b, Value first,
                    llvm::function_ref<void(OpBuilder &, Value number, Value column, int64_t columns)> emit) {
    IndexMath math{b, loc};
    auto emitAt = [&](OpBuilder &body, Value group, int64_t columns) {
      IndexMath at{body, loc};
      emit(body, at.sub(group, first), at.mul(group, groups.width), columns);
    };
    Value full = math.constant(groups.full), end = math.add(first, plan.groupsPerTask);
    if (groups.full)
      loopOver(b, loc, first, math.min(end, full), 1,
               [&](OpBuilder &body, Value group) { emitAt(body, group, groups.width); });
    if (groups.tail)
      ifThen(b, loc, math.less(full, end), [&](OpBuilder &body) { emitAt(body, full, groups.tail); });
  }

  void emitCopied(StageFunction &stage, OpBuilder &b, const Work &work, Value firstGroup) {
    PixelCopies copies(stage, loc, vector, op, plan);
    forEachBlock(b, work, [&](OpBuilder &body, const PixelBlock &block) {
      forEachGroup(body, firstGroup, [&](OpBuilder &inner, Value number, Value column, int64_t columns) {
        copies.copyOutput(inner, block, number, column, columns);
      });
      loopOver(body, loc, constantI64(body, loc, 0), constantI64(body, loc, channels()), copies.channelsAtOnce(),
               [&](OpBuilder &inner, Value c) { emitCopiedTiles(stage, inner, work, block, copies, c, firstGroup); });
    });
  }

  // The tiles whose channels from `c` on are copied at once.
  void emitCopiedTiles(StageFunction &stage, OpBuilder &b, const Work &work, const PixelBlock &block,
                       PixelCopies &copies, Value c, Value firstGroup) {
    IndexMath math{b, loc};
    auto [kh0, kh1] = tapRows(b, work);
    int64_t atOnce = copies.channelsAtOnce(), rows = plan.tileRows();
    int64_t rest = channels() % atOnce, whole = channels() / rows * rows;
    auto copy = [&, kh0 = kh0, kh1 = kh1](int64_t count) {
      return [&, count](OpBuilder &body) { copies.copyInput(body, block, kh0, kh1, c, count); };
    };
    if (rest == 0)
      copy(atOnce)(b);
    else
      ifThenElse(b, loc, math.less(c, math.constant(channels() - rest)), copy(atOnce), copy(rest));
    auto emitTile = [&, kh0 = kh0, kh1 = kh1](OpBuilder &body, Value first, int64_t count) {
      IndexMath at{body, loc};
      Value x = copies.input(body, block, kh0, kh1, at.div(at.sub(first, c), rows));
      forEachGroup(body, firstGroup, [&](OpBuilder &inner, Value number, Value column, int64_t columns) {
        Work mine = work;
        mine.column = column, mine.columns = columns;
        Operands from{x, copies.output(inner, block, number)};
        forEachRun(inner, mine, [&](OpBuilder &taps, Value kh, Value kw) {
          emitRunTile(stage, taps, mine, block, kh, kw, first, count, from);
        });
      });
    };
    Value end = math.add(c, atOnce), lastWhole = math.constant(whole);
    loopOver(b, loc, c, math.min(end, lastWhole), rows,
             [&](OpBuilder &tiles, Value first) { emitTile(tiles, first, rows); });
    if (whole != channels())
      ifThen(b, loc, math.less(lastWhole, end),
             [&](OpBuilder &body) { emitTile(body, lastWhole, channels() - whole); });
  }

  // Pixels [begin, end) for which tap `k` is inside the image.
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

  void emitRunTile(StageFunction &stage, OpBuilder &b, const Work &work, const PixelBlock &block, Value kh, Value kw,
                   Value c, int64_t rows, const Operands &from) {
    Tile tile(loc, vector, rows, work.columns, /*wholeVectors=*/plan.copies);
    if (plan.prefetchOutput)
      tile.prefetchB(prefetchSteps * op.outputChannels);
    SmallVector<int64_t> offsets(llvm::to_vector(llvm::seq<int64_t>(0, rows)));
    PixelBand band = bandOf(b, kh, kw, addRows(tile, offsets));
    Operands corner{address(b, from.x, cornerOf(b, kh, kw)), from.dY};
    updateTile(stage, b, work, tile, rowOf(b, kh, kw, c), block,
               [&](OpBuilder &at, Sums sums) { return addPixels(at, block, band, corner, sums); });
  }

  // The row of dW for position `c` of a run.
  Value rowOf(OpBuilder &b, Value kh, Value kw, Value c) {
    IndexMath math{b, loc};
    return math.add(math.mul(math.add(math.mul(kh, plan.runsPerTapRow), kw), plan.runLength), c);
  }

  // The place of the first element under a tap, from the first pixel on.
  Value cornerOf(OpBuilder &b, Value kh, Value kw) {
    IndexMath math{b, loc};
    Value down = math.mul(math.add(math.mul(kh, h.dilation), -h.padBefore), w.input);
    Value across = plan.acrossTaps ? math.constant(0) : math.mul(kw, w.dilation);
    return math.mul(math.add(math.add(down, across), -w.padBefore), read.inputChannels);
  }

  Operands operandsAt(StageFunction &stage, OpBuilder &b, Value c, Value column) {
    IndexMath math{b, loc};
    return {address(b, stage.buffer(op.input.buffer), math.add(c, op.input.offset)),
            address(b, stage.buffer(op.output.buffer), math.add(column, op.output.offset))};
  }

  // The pixels for which a run of x is inside the image.
  PixelBand bandOf(OpBuilder &b, Value kh, Value kw, PixelStep step) {
    auto [oh0, oh1] = validPixels(b, h, kh);
    if (plan.acrossTaps)
      return {oh0, oh1, {{constantI64(b, loc, 0), constantI64(b, loc, w.output()), std::move(step)}}};
    auto [ow0, ow1] = validPixels(b, w, kw);
    return {oh0, oh1, {{ow0, ow1, std::move(step)}}};
  }

  // ---- Tiles whose rows are known here ----

  void emitStaticTiles(StageFunction &stage, OpBuilder &b, const Work &work, const PixelBlock &block) {
    int64_t tiles = llvm::divideCeil(windowRows(), work.tileRows);
    for (int64_t t = 0, start = 0; t < tiles; ++t) {
      int64_t size = windowRows() / tiles + (t < windowRows() % tiles);
      emitStaticTile(stage, b, work, block, start, size);
      start += size;
    }
  }

  void emitStaticTile(StageFunction &stage, OpBuilder &b, const Work &work, const PixelBlock &block, int64_t start,
                      int64_t size) {
    Tile tile(loc, vector, size, work.columns, /*wholeVectors=*/false);
    if (plan.prefetchOutput)
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
    SmallVector<PixelBand> bands;
    for (const PixelSegment &down : pixelSegments(h, tapsHeight)) {
      PixelBand band{math.constant(down.begin), math.constant(down.end), {}};
      for (const PixelSegment &across : pixelSegments(w, tapsWidth)) {
        SmallVector<int64_t> valid(size, notRead);
        for (int64_t r = 0; r < size; ++r)
          if (down.validTaps[tapsHeight[r]] && across.validTaps[tapsWidth[r]])
            valid[r] = offsets[r];
        if (llvm::any_of(valid, [](int64_t offset) { return offset != notRead; }))
          band.runs.push_back({math.constant(across.begin), math.constant(across.end), addRows(tile, valid)});
      }
      if (!band.runs.empty())
        bands.push_back(std::move(band));
    }
    updateTile(stage, b, work, tile, math.constant(start), block, [&](OpBuilder &at, Sums sums) {
      return addPixels(at, block, bands, operandsAt(stage, at, math.constant(0), work.column), sums);
    });
  }

  // ---- Steps ----

  static constexpr int64_t notRead = INT64_MIN;

  Sums addPixels(OpBuilder &b, const PixelBlock &block, ArrayRef<PixelBand> bands, const Operands &from, Sums sums) {
    return overPixels(b, loc, read, block, bands, from.x, from.dY, sums);
  }

  // Row r of the tile reads x at the pixel plus the corner plus offsets[r].
  PixelStep addRows(const Tile &tile, ArrayRef<int64_t> offsets) {
    return [this, tile, offsets = llvm::to_vector(offsets)](OpBuilder &b, Value xPixel, Value dYPixel, Sums &ofPixel) {
      SmallVector<Value> rows;
      for (int64_t offset : offsets)
        rows.push_back(offset == notRead ? Value() : elementAddress(b, loc, op.element, xPixel, offset));
      tile.multiplyAdd(b, ofPixel, rows, dYPixel);
    };
  }

  // ---- The narrow channels ----

  // Lanes along the runs of x, rows along the channels; a tile keeps its sums over the whole chunk.
  void emitNarrow(StageFunction &stage, OpBuilder &b, const Work &work) {
    int64_t vectors = llvm::divideCeil(plan.runLength, lanes);
    int64_t mostVectors = std::max<int64_t>(1, (target.numVectorRegisters - 3) / (plan.narrow + 1));
    int64_t lanesOfTile = llvm::divideCeil(vectors, llvm::divideCeil(vectors, mostVectors)) * lanes;
    PixelBlock block{work.image0, work.image1, {}, {}};
    forEachRun(b, work, [&](OpBuilder &body, Value kh, Value kw) {
      for (int64_t c = 0; c < plan.runLength; c += lanesOfTile)
        emitNarrowTile(stage, body, work, block, kh, kw, c, std::min(lanesOfTile, plan.runLength - c));
    });
  }

  void emitNarrowTile(StageFunction &stage, OpBuilder &b, const Work &work, const PixelBlock &block, Value kh, Value kw,
                      int64_t c, int64_t columns) {
    IndexMath math{b, loc};
    int64_t firstChannel = op.outputChannels - plan.narrow;
    Tile tile(loc, vector, plan.narrow, columns, /*wholeVectors=*/false);
    PixelBand band = bandOf(b, kh, kw, [&](OpBuilder &body, Value xPixel, Value dYPixel, Sums &ofPixel) {
      SmallVector<Value> rows;
      for (int64_t r = 0; r < plan.narrow; ++r)
        rows.push_back(elementAddress(body, loc, op.element, dYPixel, r));
      tile.multiplyAdd(body, ofPixel, rows, xPixel);
    });
    Operands from = operandsAt(stage, b, math.add(cornerOf(b, kh, kw), c), math.constant(firstChannel));
    Sums sums = addPixels(b, block, band, from, tile.zeros(b));
    Value row = rowOf(b, kh, kw, math.constant(c));
    for (int64_t r = 0; r < plan.narrow; ++r)
      for (int64_t v = 0; v < tile.vectors(); ++v)
        scatter(b, sums[r * tile.vectors() + v],
                partialAt(stage, b, work, math.add(row, v * lanes), math.constant(firstChannel + r)), partials.width,
                tile.lanesOf(v));
  }

  // Lane i is stored to place + i * stride.
  void scatter(OpBuilder &b, Value sums, Value place, int64_t stride, int64_t count) {
    for (int64_t lane = 0; lane < count; ++lane)
      storeVector(b, loc, b.create<vector::ExtractOp>(loc, sums, ArrayRef<int64_t>{lane}),
                  elementAddress(b, loc, op.element, place, lane * stride));
  }

  void finish(StageFunction &stage, OpBuilder &b, Value row, Value column, Value sums) {
    IndexMath math{b, loc};
    if (op.epilogue) {
      Value tap = math.div(row, channels());
      return op.epilogue.store(
          stage, b, loc, {column, math.rem(row, channels()), math.div(tap, w.kernel), math.rem(tap, w.kernel)}, sums);
    }
    Value at = math.add(math.mul(math.div(column, op.panel), windowRows() * op.panel), math.mul(row, op.panel));
    at = math.add(math.add(at, math.rem(column, op.panel)), op.weights.offset);
    storeVector(b, loc, sums, address(b, stage.buffer(op.weights.buffer), at));
  }

  Value address(OpBuilder &b, Value base, Value offset) { return elementAddress(b, loc, op.element, base, offset); }

  StageModule module;
  std::string name;
  Location loc;
  const Convolution &op;
  const Target &target;
  int64_t lanes;
  VectorType vector;

  WeightGradientPlan plan;
  const Partials &partials;
  const ColumnGroups &groups;
  Convolution read; // the pixels that tiles read: those of the convolution, or copies of them
  const Convolution::Axis &h, &w;
};

} // namespace

Contraction emitConvolutionWeightGradient(const StageModule &module, llvm::StringRef name, Location loc,
                                          const Convolution &op, const Target &target) {
  return WeightGradientEmitter(module, name, loc, op, target).emit();
}

} // namespace sluice::cpu
