// Memory of the transformed operands, where a vector has the target's lanes:
//   images   [position][tile][channel]           rows of A of a product of each position
//   filters  [vector of outputs][position][channel][lane]   panels of B
//   sums     [tile][position][output channel of the group]
// The distances of positions are odd numbers of vectors, so that they map to different cache sets.
#include "backends/cpu/compiler/product/window/WinogradWindow.h"

#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"
#include "backends/cpu/compiler/product/tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

namespace sluice::cpu {

using namespace mlir;

// Channels of a task that transforms filters.
static constexpr int64_t channelsOfTask = 64;

namespace {

class WinogradEmitter {
public:
  WinogradEmitter(const StageModule &module, llvm::StringRef name, Location loc, const WindowSum &sum,
                  const WinogradPlan &plan, const Target &target)
      : module(module), name(name), loc(loc), op(sum), plan(plan), transforms(plan.transforms()), m(plan.outputs),
        size(transforms.size()), positions(transforms.positions()), lanes(target.lanes(32)),
        vector(VectorType::get({lanes}, sum.element)) {
    rowOfImages = oddVectors(op.inputChannels);
    int64_t tiles = plan.imagesFirst ? op.rows * plan.tilesOfImage() : plan.block;
    positionOfImages = oddVectors((tiles + plan.tileRows) * rowOfImages);
    positionOfFilters = (plan.terms | 1) * lanes;
    vectorOfFilters = positions * positionOfFilters;
    rowOfSums = positions * plan.groups.width;
    rowsOfSums = plan.rowsOfSums(op.inputChannels);
  }

  void emit(Place workspace, Contraction &result) {
    int64_t begin = llvm::alignTo(result.workspaceBytes, 64);
    transformed = {workspace.buffer, workspace.offset + begin / 4};
    int64_t elements = plan.imagesFirst ? elementsOfImages() : vectors() * vectorOfFilters;
    result.workspaceBytes = begin + elements * 4;
    result.stages.push_back(plan.imagesFirst ? emitImages() : emitFilters());
    result.stages.push_back(emitProducts());
  }

private:
  int64_t oddVectors(int64_t elements) const { return (llvm::divideCeil(elements, lanes) | 1) * lanes; }
  int64_t vectors() const { return llvm::divideCeil(op.outputChannels, lanes); }
  int64_t elementsOfImages() const { return positions * positionOfImages; }

  // ---- Stages ----

  /// Transforms all filters. A task has some channels of a panel.
  Stage emitFilters() {
    int64_t parts = llvm::divideCeil(op.inputChannels, channelsOfTask), ofPanel = op.panel / lanes;
    StageFunction stage = StageFunction::create(module, name + "_filters", loc);
    stage.forEachTask([&](OpBuilder &b, Value task) {
      IndexMath math{b, loc};
      Value vector = math.mul(math.div(task, parts), ofPanel),
            channel = math.mul(math.rem(task, parts), channelsOfTask);
      Value lastVector = math.min(math.add(vector, ofPanel), math.constant(vectors()));
      Value lastChannel = math.min(math.add(channel, channelsOfTask), math.constant(op.inputChannels));
      Value to = math.add(math.add(math.mul(vector, vectorOfFilters), math.mul(channel, lanes)), transformed.offset);
      transformFilters(stage, b, {vector, lastVector}, {channel, lastChannel},
                       address(b, stage.buffer(transformed.buffer), to));
    });
    return {name + "_filters", int64_t(llvm::divideCeil(vectors(), ofPanel)) * parts, 0};
  }

  /// Transforms all images. A task has some tiles of an image.
  Stage emitImages() {
    StageFunction stage = StageFunction::create(module, name + "_images", loc);
    patch = patchOf(stage);
    stage.forEachTask([&](OpBuilder &b, Value task) {
      Value row = address(b, address(b, stage.buffer(transformed.buffer), transformed.offset),
                          IndexMath{b, loc}.mul(task, rowOfImages));
      transformImage(stage, b, task, row);
    });
    return {name + "_images", plan.tilesOfImage(), /*rowsPerTask=*/1};
  }

  Stage emitProducts() {
    StageFunction stage = StageFunction::create(module, name + "_winograd", loc);
    int64_t groupTasks = llvm::divideCeil(plan.groups.count(), plan.groupsOfTask);
    int64_t tasks = plan.tasksOfImage * groupTasks;
    sums = stage.stack(op.element, llvm::alignTo(rowsOfSums, plan.tileRows) * rowOfSums);
    outputs = stage.stack(op.element, m * m * plan.groups.width);
    if (plan.imagesFirst) {
      filters = stage.stack(op.element, plan.groups.width / lanes * vectorOfFilters);
    } else {
      images = stage.stack(op.element, elementsOfImages());
      patch = patchOf(stage);
    }
    stage.forEachTask([&](OpBuilder &b, Value task) {
      IndexMath math{b, loc};
      Value rest = math.rem(task, tasks), group = math.mul(math.rem(rest, groupTasks), plan.groupsOfTask);
      Range tiles = tilesOf(stage, b, math.div(task, tasks), math.div(rest, groupTasks));
      if (plan.imagesFirst) {
        Value rows = address(b, stage.buffer(transformed.buffer),
                             math.add(math.mul(tiles.first, rowOfImages), transformed.offset));
        return emitGroup(stage, b, tiles, group, rows);
      }
      loopOver(b, loc, tiles.first, tiles.last, plan.block, [&](OpBuilder &inner, Value first) {
        IndexMath at{inner, loc};
        emitBlock(stage, inner, {first, at.min(at.add(first, plan.block), tiles.last)});
      });
    });
    return {name + "_winograd", tasks, plan.imagesPerTask, plan.text()};
  }

  // ---- Tasks ----

  struct Range {
    Value first, last; // the last one is excluded
  };

  /// The numbers of tiles, through the images of the call.
  Range tilesOf(StageFunction &stage, OpBuilder &b, Value imageBlock, Value part) {
    IndexMath math{b, loc};
    Value firstImage = math.mul(imageBlock, plan.imagesPerTask);
    Value lastImage = math.min(math.add(firstImage, plan.imagesPerTask), stage.rows);
    Value first = math.add(math.mul(firstImage, plan.tilesOfImage()), math.mul(part, plan.tilesOfTask));
    return {first, math.min(math.add(first, plan.tilesOfTask), math.mul(lastImage, plan.tilesOfImage()))};
  }

  /// All outputs of a block of tiles.
  void emitBlock(StageFunction &stage, OpBuilder &b, const Range &tiles) {
    loopOver(b, loc, tiles.first, tiles.last, 1, [&](OpBuilder &inner, Value tile) {
      IndexMath at{inner, loc};
      transformImage(stage, inner, tile, address(inner, images, at.mul(at.sub(tile, tiles.first), rowOfImages)));
    });
    loopOver(b, loc, constantI64(b, loc, 0), constantI64(b, loc, plan.groups.count()), 1,
             [&](OpBuilder &inner, Value group) { emitGroup(stage, inner, tiles, group, images); });
  }

  /// The outputs of a group of channels. `rows` is the address of the transformed images of the first tile.
  void emitGroup(StageFunction &stage, OpBuilder &b, const Range &tiles, Value group, Value rows) {
    if (!plan.groups.tail)
      return emitColumns(stage, b, tiles, group, plan.groups.width, rows);
    if (!plan.groups.full)
      return emitColumns(stage, b, tiles, group, plan.groups.tail, rows);
    ifThenElse(
        b, loc, IndexMath{b, loc}.less(group, constantI64(b, loc, plan.groups.full)),
        [&](OpBuilder &then) { emitColumns(stage, then, tiles, group, plan.groups.width, rows); },
        [&](OpBuilder &otherwise) { emitColumns(stage, otherwise, tiles, group, plan.groups.tail, rows); });
  }

  void emitColumns(StageFunction &stage, OpBuilder &b, const Range &tiles, Value group, int64_t columns, Value rows) {
    IndexMath math{b, loc};
    Value column = math.mul(group, plan.groups.width), vector = math.div(column, lanes);
    Range vectorsOfGroup{vector, math.add(vector, llvm::divideCeil(columns, lanes))};
    bool inParts = plan.terms < op.inputChannels;
    Value ofGroup = filters;
    if (!plan.imagesFirst)
      ofGroup =
          address(b, stage.buffer(transformed.buffer), math.add(math.mul(vector, vectorOfFilters), transformed.offset));
    else if (!inParts)
      transformFilters(stage, b, vectorsOfGroup, {math.constant(0), math.constant(plan.terms)}, filters);
    loopOver(b, loc, tiles.first, tiles.last, rowsOfSums, [&](OpBuilder &inner, Value first) {
      IndexMath at{inner, loc};
      Range some{first, at.min(at.add(first, rowsOfSums), tiles.last)};
      Value its = address(inner, rows, at.mul(at.sub(first, tiles.first), rowOfImages));
      if (inParts)
        multiplyInParts(stage, inner, some, vectorsOfGroup, columns, its);
      else
        multiply(inner, at.sub(some.last, first), columns, its, ofGroup, /*adds=*/false);
      finish(stage, inner, some, column, columns);
    });
  }

  /// Transforms the group's filters of some channels at a time, and adds their products.
  void multiplyInParts(StageFunction &stage, OpBuilder &b, const Range &tiles, const Range &vectorsOfGroup,
                       int64_t columns, Value rows) {
    IndexMath math{b, loc};
    Value count = math.sub(tiles.last, tiles.first);
    auto addTerms = [&](OpBuilder &inner, Value channel, bool adds) {
      Value lastChannel = IndexMath{inner, loc}.add(channel, plan.terms);
      transformFilters(stage, inner, vectorsOfGroup, {channel, lastChannel}, filters);
      multiply(inner, count, columns, address(inner, rows, channel), filters, adds);
    };
    addTerms(b, math.constant(0), false);
    loopOver(b, loc, math.constant(plan.terms), math.constant(op.inputChannels), plan.terms,
             [&](OpBuilder &inner, Value channel) { addTerms(inner, channel, true); });
  }

  // ---- Transforms ----

  /// The filters of some vectors of outputs and channels. `to` is the address of the first one at position 0.
  void transformFilters(StageFunction &stage, OpBuilder &b, const Range &vectorsOfOutputs, const Range &channels,
                        Value to) {
    constexpr int64_t taps = 9;
    Value weights = address(b, stage.buffer(op.weights.buffer), op.weights.offset);
    auto transformOne = [&](OpBuilder &inner, Value channel, Value which) {
      IndexMath at{inner, loc};
      Value column = at.mul(which, lanes), panel = at.mul(at.div(column, op.panel), taps * op.inputChannels);
      Value from = address(inner, weights, at.add(at.mul(at.add(panel, channel), op.panel), at.rem(column, op.panel)));
      SmallVector<Value> filter;
      for (int64_t tap = 0; tap < taps; ++tap)
        filter.push_back(load(inner, from, tap * op.inputChannels * op.panel));
      Value place = at.add(at.mul(at.sub(which, vectorsOfOutputs.first), vectorOfFilters),
                           at.mul(at.sub(channel, channels.first), lanes));
      Value target = address(inner, to, place);
      for (auto [position, value] : llvm::enumerate(transformSquare(inner, loc, transforms.filter, filter)))
        storeVector(inner, loc, value, address(inner, target, int64_t(position) * positionOfFilters));
    };
    // Neighboring vectors are next to each other in their panel.
    loopOver(b, loc, channels.first, channels.last, 1, [&](OpBuilder &outer, Value channel) {
      loopOver(outer, loc, vectorsOfOutputs.first, vectorsOfOutputs.last, 1,
               [&](OpBuilder &inner, Value which) { transformOne(inner, channel, which); });
    });
  }

  /// Memory for the inputs of a tile at the border of an image, `[size][size][channels]`.
  Value patchOf(StageFunction &stage) { return stage.stack(op.element, size * size * op.inputChannels); }

  // The place of a tile.
  struct Corner {
    Value image, row, column; // of its first output
  };

  Corner cornerOf(OpBuilder &b, Value tile) {
    IndexMath math{b, loc};
    Value ofImage = math.rem(tile, plan.tilesOfImage());
    return {math.div(tile, plan.tilesOfImage()), math.mul(math.div(ofImage, plan.across), m),
            math.mul(math.rem(ofImage, plan.across), m)};
  }

  /// The inputs of a tile, for all channels. `to` is the address of its row at position 0.
  void transformImage(StageFunction &stage, OpBuilder &b, Value tile, Value to) {
    const WindowAxis &h = op.phases[0].height, &w = op.phases[0].width;
    IndexMath math{b, loc};
    Corner corner = cornerOf(b, tile);
    Value row = math.add(corner.row, h.inputStart), column = math.add(corner.column, w.inputStart);
    Value inside = both(b, both(b, isIn(b, row, h.inputSize), isIn(b, math.add(row, size - 1), h.inputSize)),
                        both(b, isIn(b, column, w.inputSize), isIn(b, math.add(column, size - 1), w.inputSize)));
    Value offset = math.mul(math.add(math.mul(math.add(math.mul(corner.image, h.inputSize), row), w.inputSize), column),
                            op.inputChannels);
    Value inImage = address(b, address(b, stage.buffer(op.input.buffer), op.input.offset), offset);
    ifThenElse(
        b, loc, inside, [](OpBuilder &) {},
        [&](OpBuilder &otherwise) { copyPatch(otherwise, inImage, row, column, patch); });
    Value from = b.create<arith::SelectOp>(loc, inside, inImage, patch);
    Value distance = b.create<arith::SelectOp>(loc, inside, math.constant(w.inputSize * op.inputChannels),
                                               math.constant(size * op.inputChannels));
    SmallVector<Value> rows = {from};
    for (int64_t i = 1; i < size; ++i)
      rows.push_back(address(b, rows.back(), distance));
    forEachVector(b, [&](OpBuilder &inner, Value channel) {
      SmallVector<Value> inputs;
      for (Value its : rows)
        for (int64_t j = 0; j < size; ++j)
          inputs.push_back(load(inner, address(inner, its, channel), j * op.inputChannels));
      Value target = address(inner, to, channel);
      for (auto [position, value] : llvm::enumerate(transformSquare(inner, loc, transforms.image, inputs)))
        storeVector(inner, loc, value, address(inner, target, int64_t(position) * positionOfImages));
    });
  }

  /// Copies the inputs of a tile, whose first one is at `from`, with zeros outside of the image.
  void copyPatch(OpBuilder &b, Value from, Value row, Value column, Value to) {
    const WindowAxis &h = op.phases[0].height, &w = op.phases[0].width;
    IndexMath math{b, loc};
    loopOver(b, loc, math.constant(0), math.constant(size * size), 1, [&](OpBuilder &inner, Value at) {
      IndexMath place{inner, loc};
      Value i = place.div(at, size), j = place.rem(at, size);
      Value source = address(inner, from, place.mul(place.add(place.mul(i, w.inputSize), j), op.inputChannels));
      Value target = address(inner, to, place.mul(at, op.inputChannels));
      Value inside =
          both(inner, isIn(inner, place.add(row, i), h.inputSize), isIn(inner, place.add(column, j), w.inputSize));
      ifThenElse(
          inner, loc, inside,
          [&](OpBuilder &then) {
            forEachVector(then, [&](OpBuilder &body, Value channel) {
              storeVector(body, loc, load(body, address(body, source, channel), 0), address(body, target, channel));
            });
          },
          [&](OpBuilder &otherwise) {
            Value zero = otherwise.create<arith::ConstantOp>(loc, otherwise.getZeroAttr(vector));
            forEachVector(otherwise, [&](OpBuilder &body, Value channel) {
              storeVector(body, loc, zero, address(body, target, channel));
            });
          });
    });
  }

  /// The first input channel of each vector. The last vector may overlap the one before it.
  void forEachVector(OpBuilder &b, llvm::function_ref<void(OpBuilder &, Value)> body) {
    IndexMath math{b, loc};
    loopOver(b, loc, math.constant(0), math.constant(op.inputChannels), lanes, [&](OpBuilder &inner, Value channel) {
      bool whole = op.inputChannels % lanes == 0;
      body(inner,
           whole ? channel : IndexMath{inner, loc}.min(channel, constantI64(inner, loc, op.inputChannels - lanes)));
    });
  }

  /// Transforms the sums of the tiles, and passes the outputs inside of the image to the epilogue.
  void finish(StageFunction &stage, OpBuilder &b, const Range &tiles, Value column, int64_t columns) {
    loopOver(b, loc, tiles.first, tiles.last, 1, [&](OpBuilder &inner, Value tile) {
      IndexMath math{inner, loc};
      Value from = address(inner, sums, math.mul(math.sub(tile, tiles.first), rowOfSums));
      int64_t width = plan.groups.width;
      loopOver(inner, loc, math.constant(0), math.constant(columns), lanes, [&](OpBuilder &body, Value first) {
        SmallVector<Value> its;
        for (int64_t position = 0; position < positions; ++position)
          its.push_back(load(body, address(body, from, first), position * width));
        Value to = address(body, outputs, first);
        for (auto [place, value] : llvm::enumerate(transformSquare(body, loc, transforms.output, its)))
          storeVector(body, loc, value, address(body, to, int64_t(place) * width));
      });
      storeOutputs(stage, inner, cornerOf(inner, tile), column, columns);
    });
  }

  void storeOutputs(StageFunction &stage, OpBuilder &b, const Corner &corner, Value column, int64_t columns) {
    IndexMath math{b, loc};
    auto endOf = [&](Value first, int64_t limit) {
      return math.min(math.constant(m), math.sub(math.constant(limit), first));
    };
    Value rows = endOf(corner.row, op.phases[0].height.outputs),
          across = endOf(corner.column, op.phases[0].width.outputs);
    loopOver(b, loc, math.constant(0), rows, 1, [&](OpBuilder &down, Value i) {
      loopOver(down, loc, constantI64(down, loc, 0), across, 1, [&](OpBuilder &inner, Value j) {
        IndexMath at{inner, loc};
        Value from = address(inner, outputs, at.mul(at.add(at.mul(i, m), j), plan.groups.width));
        for (int64_t first = 0; first < columns; first += lanes)
          op.epilogue.store(stage, inner, loc,
                            {corner.image, at.add(column, first), at.add(corner.row, i), at.add(corner.column, j)},
                            firstLanes(inner, loc, load(inner, from, first), columns - first));
      });
    });
  }

  // ---- Products ----

  /// The products of all positions: the terms of `count` tiles, times `columns` output channels.
  void multiply(OpBuilder &b, Value count, int64_t columns, Value rows, Value filtersOfGroup, bool adds) {
    IndexMath math{b, loc};
    Tile tile(loc, vector, plan.tileRows, columns, /*wholeVectors=*/true);
    tile.panelsOfB(lanes, vectorOfFilters);
    tile.prefetchB(prefetchSteps * lanes); // filters of all positions do not fit in the first-level cache
    loopOver(b, loc, math.constant(0), math.constant(positions), 1, [&](OpBuilder &ofPosition, Value position) {
      IndexMath place{ofPosition, loc};
      Value aPosition = address(ofPosition, rows, place.mul(position, positionOfImages));
      Value bPosition = address(ofPosition, filtersOfGroup, place.mul(position, positionOfFilters));
      Value sumsOfPosition = address(ofPosition, sums, place.mul(position, plan.groups.width));
      loopOver(ofPosition, loc, place.constant(0), count, plan.tileRows, [&](OpBuilder &inner, Value row) {
        IndexMath at{inner, loc};
        Value to = address(inner, sumsOfPosition, at.mul(row, rowOfSums));
        Sums carried = adds ? tile.load(inner, to, rowOfSums) : tile.zeros(inner);
        carried = addTerms(inner, tile, address(inner, aPosition, at.mul(row, rowOfImages)), bPosition, carried);
        tile.store(inner, carried, to, rowOfSums);
      });
    });
  }

  Sums addTerms(OpBuilder &b, const Tile &tile, Value a, Value filter, Sums carried) {
    int64_t unroll = tile.rows() * tile.vectors() >= 16 ? 2 : 4, terms = plan.terms;
    auto step = [&](OpBuilder &inner, Value k, int64_t plus, Sums &its) {
      SmallVector<Value> rows;
      Value first = address(inner, address(inner, a, k), plus);
      for (int64_t row = 0; row < tile.rows(); ++row)
        rows.push_back(address(inner, first, row * rowOfImages));
      Value panel = address(inner, address(inner, filter, IndexMath{inner, loc}.mul(k, lanes)), plus * lanes);
      tile.multiplyAdd(inner, its, rows, panel);
    };
    return terms > termsPerSum ? accumulateInParts(b, loc, tile, terms, unroll, carried, step)
                               : accumulateOver(b, loc, terms, unroll, carried, step);
  }

  // ---- Arithmetic ----

  Value both(OpBuilder &b, Value x, Value y) { return b.create<arith::AndIOp>(loc, x, y); }
  /// Whether a place is inside of [0, limit).
  Value isIn(OpBuilder &b, Value place, int64_t limit) {
    IndexMath math{b, loc};
    return both(b, math.less(math.constant(-1), place), math.less(place, math.constant(limit)));
  }
  Value load(OpBuilder &b, Value base, int64_t offset) { return loadVector(b, loc, vector, address(b, base, offset)); }
  Value address(OpBuilder &b, Value base, Value offset) { return elementAddress(b, loc, op.element, base, offset); }
  Value address(OpBuilder &b, Value base, int64_t offset) { return elementAddress(b, loc, op.element, base, offset); }

  StageModule module;
  std::string name;
  Location loc;
  const WindowSum &op;
  const WinogradPlan &plan;
  const WinogradTransforms &transforms;
  int64_t m, size, positions, lanes;
  VectorType vector;

  int64_t rowOfImages, positionOfImages;                 // distances of rows and positions, in elements
  int64_t positionOfFilters, vectorOfFilters, rowOfSums; // likewise
  int64_t rowsOfSums;                                    // tiles
  Place transformed;                                     // the operand of the first stage
  Value images, filters, sums, outputs, patch;           // memory of a task
};

} // namespace

void emitWinograd(const StageModule &module, llvm::StringRef name, Location loc, const WindowSum &sum,
                  const WinogradPlan &plan, Place workspace, const Target &target, Contraction &result) {
  WinogradEmitter(module, name.str(), loc, sum, plan, target).emit(workspace, result);
}

} // namespace sluice::cpu
