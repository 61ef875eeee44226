// Matrix products.
//
// A task is a block of C's rows times one group of columns. B's group stays in the second-level cache while tiles of A
// pass over it. If B is large, they also prefetch the next group. If k is too long to stay, or if terms are laid out so
// that they evict each other, the block is summed over parts of k (SumsOfBlock.h).
//
// Weights come in panels. A preceding stage packs B into panels if B is transposed, or if its long rows would evict
// each other while they are used often. If C is small and k is the batch, k is split into chunks, whose number follows
// from the shape, and a later stage sums them. MatmulPlan.h makes these decisions.
#include "backends/cpu/compiler/machine/Halves.h"
#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/Contraction.h"
#include "backends/cpu/compiler/product/matmul/MatmulPlan.h"
#include "backends/cpu/compiler/product/matmul/SumsOfBlock.h"
#include "backends/cpu/compiler/product/tile/BlockElements.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"
#include "backends/cpu/compiler/product/tile/Tile.h"
#include "backends/cpu/compiler/product/tile/TileChoice.h"
#include "sluice/backend/blocks.h"

#include "llvm/Support/MathExtras.h"

namespace sluice::cpu {

using namespace mlir;

namespace {

// The number of rows by which prefetches of a finished block's results are ahead of the stores.
constexpr int64_t rowsAhead = 4;

class MatmulEmitter {
public:
  MatmulEmitter(const StageModule &module, llvm::StringRef name, Location loc, const Matmul &matmul,
                const Target &target)
      : module(module), name(name), loc(loc), op(matmul), plan(matmul, target), target(target),
        lanes(target.lanes(matmul.element.getIntOrFloatBitWidth())), vector(VectorType::get({lanes}, matmul.element)) {}

  Contraction emit() {
    Contraction result;
    result.workspaceBytes = plan.workspaceBytes;
    if (plan.packed)
      result.stages.push_back(emitPackPanels(module, name + "_pack", loc, plan.packStage(), target));
    result.stages.push_back(emitProducts());
    if (plan.splitK)
      result.stages.push_back(emitSumPartials(module, name + "_sum", loc, plan.partials, target,
                                              [&](StageFunction &stage, OpBuilder &b, Location, Value row, Value column,
                                                  Value sums) { finish(stage, b, {}, row, column, sums); }));
    plan.describe(result);
    return result;
  }

private:
  int64_t elementBytes() const { return op.element.getIntOrFloatBitWidth() / 8; }

  // ---- The product stage ----

  Stage emitProducts() {
    Stage product{name + "_product", plan.tasks, plan.rowsPerTask, plan.groups.text()};
    StageFunction stage = StageFunction::create(module, product.function, loc);
    stage.forEachTask([&](OpBuilder &b, Value task) { emitTask(stage, b, task); });
    return product;
  }

  // The part of C that a task computes.
  struct TaskPlace {
    Value rowBlock; // of the rows of a call
    Value block;    // static block of rows
    Value group;    // first group of columns
    Value batch;    // linear index
  };

  TaskPlace placeOf(StageFunction &stage, OpBuilder &b, Value task) {
    IndexMath math{b, loc};
    int64_t groupTasks = llvm::divideCeil(plan.groups.count(), plan.groupsOfTask);
    if (plan.rowsInner) {
      Value rowBlocks = plan.rowsPerTask ? math.ceilDiv(stage.rows, plan.rowsPerTask) : math.constant(1);
      Value ofGroup = math.div(task, plan.staticBlocksOfM);
      return {math.rem(ofGroup, rowBlocks), math.rem(task, plan.staticBlocksOfM),
              math.mul(math.div(ofGroup, rowBlocks), plan.groupsOfTask), math.constant(0)};
    }
    TaskPlace place{math.constant(0), {}, {}, {}};
    if (plan.rowsPerTask != 0) {
      place.rowBlock = math.div(task, plan.tasks);
      task = math.rem(task, plan.tasks);
    }
    place.group = math.mul(math.rem(task, groupTasks), plan.groupsOfTask);
    task = math.div(task, groupTasks);
    place.block = math.rem(task, plan.staticBlocksOfM);
    place.batch = math.div(task, plan.staticBlocksOfM);
    return place;
  }

  void emitTask(StageFunction &stage, OpBuilder &b, Value task) {
    IndexMath math{b, loc};
    auto [rowBlock, block, group, batchIndex] = placeOf(stage, b, task);

    Value first = math.mul(rowBlock, plan.rowsPerTask * op.rowsFactor);
    Value rowsOfCall = math.mul(stage.rows, op.rowsFactor);
    Value last = math.min(math.add(first, plan.rowsPerTask * op.rowsFactor), rowsOfCall);
    if (op.rows == Matmul::Rows::M) {
      m0 = math.add(first, math.mul(block, plan.rowsOfBlock));
      m1 = plan.staticBlocksOfM > 1 ? math.min(math.add(m0, plan.rowsOfBlock), last) : last;
    } else {
      m0 = math.mul(block, plan.rowsOfBlock);
      m1 = math.min(math.add(m0, plan.rowsOfBlock), math.constant(op.m));
    }
    if (op.rows == Matmul::Rows::K) {
      k0 = plan.splitK ? first : math.constant(0);
      k1 = plan.splitK ? last : rowsOfCall;
      chunk = rowBlock;
    }
    if (op.rows != Matmul::Rows::Batch)
      return emitGroup(stage, b, math.delinearize(batchIndex, op.batch), group);
    SmallVector<Value> inner = math.delinearize(batchIndex, ArrayRef<int64_t>(op.batch).drop_front());
    loopOver(b, loc, first, last, 1, [&](OpBuilder &body, Value outermost) {
      SmallVector<Value> batch = {outermost};
      batch.append(inner);
      emitGroup(stage, body, batch, group);
    });
  }

  void emitGroup(StageFunction &stage, OpBuilder &b, ArrayRef<Value> batch, Value group) {
    if (plan.inParts)
      return emitBlocksInParts(stage, b, batch, group);
    if (!plan.groups.tail)
      return emitBlock(stage, b, batch, group, plan.groups.width, plan.groups.rows);
    if (!plan.groups.full)
      return emitBlock(stage, b, batch, group, plan.groups.tail, plan.groups.tailRows);
    IndexMath math{b, loc};
    Value full = math.less(group, math.constant(plan.groups.full));
    ifThenElse(
        b, loc, full,
        [&](OpBuilder &then) { emitBlock(stage, then, batch, group, plan.groups.width, plan.groups.rows); },
        [&](OpBuilder &otherwise) {
          emitBlock(stage, otherwise, batch, group, plan.groups.tail, plan.groups.tailRows);
        });
  }

  // The tiles of the rows [first, end), which have `size` rows. The last ones may have fewer. If their number depends on
  // the task, `emit` gets `end` as the limit of the rows that exist.
  void forEachTile(OpBuilder &b, Value first, Value end, int64_t size, int64_t columns,
                   llvm::function_ref<void(OpBuilder &, Value row, int64_t rows, Value limit)> emit) {
    IndexMath math{b, loc};
    auto emitTiles = [&](Value from, Value to, int64_t rows) {
      loopOver(b, loc, from, to, rows, [&](OpBuilder &body, Value row) { emit(body, row, rows, Value()); });
    };
    Value rows = math.sub(end, first);
    if (plan.hasShortTiles(size, llvm::divideCeil(columns, lanes))) { // a block of whole tiles has none
      Value missing = math.sub(math.mul(math.ceilDiv(rows, size), size), rows);
      Value begin = math.sub(end, math.mul(missing, size - 1));
      emitTiles(first, begin, size);
      return emitTiles(begin, end, size - 1);
    }
    Value whole = math.add(first, math.roundDown(rows, size));
    emitTiles(first, whole, size);
    std::optional<int64_t> rest = plan.rest(size);
    if (rest != 0)
      ifThen(b, loc, math.less(whole, end),
             [&](OpBuilder &body) { emit(body, whole, rest.value_or(size), rest ? Value() : end); });
  }

  // ---- Sums in parts ----

  // A part of k of a block.
  struct Part {
    Value a;           // address of A's terms of row 0
    Value b, nextB;    // addresses of B's terms of the first column, and of that of the next group
    Value terms, rows; // how many
    Value column;      // index of the first one in the task
    int64_t columns;
  };

  // The rows [m0, m1) of a task's groups, the first of which is `group`, as many at a time as fit on the stack.
  void emitBlocksInParts(StageFunction &stage, OpBuilder &b, ArrayRef<Value> batch, Value group) {
    int64_t most = plan.rowsAtOnce();
    SumsOfBlock block(stage, loc, vector, llvm::alignTo(most, plan.tileRows()), plan.groupsOfTask * plan.groups.width);
    if (plan.copiesA)
      block.makeRoomForA(stage, plan.terms, plan.tileRows());
    if (copiesB())
      block.makeRoomForB(stage, plan.terms, plan.groups.width);
    if (plan.rowsOfBlock == most)
      return emitInParts(stage, b, batch, group, block);
    Value first = m0, last = m1;
    loopOver(b, loc, first, last, most, [&](OpBuilder &inner, Value row) {
      IndexMath math{inner, loc};
      m0 = row;
      m1 = math.min(math.add(row, most), last);
      emitInParts(stage, inner, batch, group, block);
    });
    m0 = first;
    m1 = last;
  }

  void emitInParts(StageFunction &stage, OpBuilder &b, ArrayRef<Value> batch, Value group, SumsOfBlock &block) {
    IndexMath math{b, loc};
    Value rows = math.sub(m1, m0), end = op.rows == Matmul::Rows::K ? k1 : math.constant(op.k);
    Value aBase = corner(stage, b, op.a, batch);
    block.clear(b, math.mul(math.ceilDiv(rows, plan.tileRows()), plan.tileRows()));
    loopOver(b, loc, math.constant(0), end, plan.terms, [&](OpBuilder &body, Value first) {
      IndexMath inner{body, loc};
      Value a = address(body, aBase, inner.mul(first, op.a.strideJ));
      Part part{a, {}, {}, inner.sub(inner.min(inner.add(first, plan.terms), end), first), rows, {}, 0};
      if (plan.copiesA)
        block.copyA(body, address(body, a, inner.mul(m0, op.a.strideI)), op.a.strideJ, part.terms, rows,
                    op.m % plan.tileRows());
      forEachGroup(body, group, [&](OpBuilder &inside, Value which, int64_t columns) {
        part.b = partOfB(stage, inside, batch, block, which, first, part.terms, columns);
        if (plan.stepsPerPrefetch)
          part.nextB =
              partOfB(stage, inside, batch, block, IndexMath{inside, loc}.add(which, 1), first, part.terms, columns);
        part.column = placeIn(inside, which, group);
        part.columns = columns;
        addPart(inside, block, part);
      });
    });
    forEachGroup(b, group, [&](OpBuilder &body, Value which, int64_t columns) {
      finishBlock(stage, body, batch, block, which, placeIn(body, which, group), columns, rows);
    });
  }

  // The address of the terms from `first` on of a group of B's columns, or of their copy.
  Value partOfB(StageFunction &stage, OpBuilder &b, ArrayRef<Value> batch, SumsOfBlock &block, Value group, Value first,
                Value terms, int64_t columns) {
    IndexMath math{b, loc};
    Value column = math.mul(group, plan.groups.width);
    if (plan.packsParts) {
      PackPanels pack = plan.packStage();
      return block.packB(b, pack, address(b, corner(stage, b, op.b, batch), math.mul(column, pack.strideN)), first,
                         terms, columns);
    }
    Value from = addressInB(b, columnsOfB(stage, b, batch, column), math.mul(first, strideOfB()));
    if (op.b.scales)
      return block.dequantizeB(b, tileOf(1, columns), from, scalesOfColumns(stage, b, column), strideOfB(), first,
                               terms);
    return plan.panelOfB ? from : block.copyB(b, from, strideOfB(), terms, columns);
  }

  // Whether a task that sums over parts copies those of B.
  bool copiesB() const { return !plan.panelOfB || op.b.scales; }

  // A tile that reads B from memory.
  Tile tileOf(int64_t rows, int64_t columns) const {
    Tile tile(loc, vector, rows, columns, plan.panelOfB != 0);
    tile.panelsOfB(plan.panelOfB, distanceOfPanels());
    tile.halvesInB(op.b.half);
    if (op.b.scales)
      tile.blocksInB(distanceOfPanels() / SLUICE_BLOCK_ELEMENTS);
    return tile;
  }

  // The number of a group's first column, counted from the first column of the task.
  Value placeIn(OpBuilder &b, Value which, Value first) {
    IndexMath math{b, loc};
    return math.mul(math.sub(which, first), plan.groups.width);
  }

  // Calls `body` for the column groups of a task, which begin at `first`, with the width of each. Only the last group
  // of all may be narrower.
  void forEachGroup(OpBuilder &b, Value first, llvm::function_ref<void(OpBuilder &, Value, int64_t)> body) {
    IndexMath math{b, loc};
    Value end = math.add(first, plan.groupsOfTask), full = math.constant(plan.groups.full);
    if (plan.groups.full)
      loopOver(b, loc, first, math.min(end, full), 1,
               [&](OpBuilder &inner, Value which) { body(inner, which, plan.groups.width); });
    if (plan.groups.tail)
      ifThen(b, loc, math.less(full, end), [&](OpBuilder &inner) { body(inner, full, plan.groups.tail); });
  }

  void addPart(OpBuilder &b, SumsOfBlock &block, const Part &part) {
    forEachTile(
        b, constantI64(b, loc, 0), part.rows, plan.tileRows(), part.columns,
        [&](OpBuilder &body, Value row, int64_t rows, Value limit) { addTile(body, block, part, row, rows, limit); });
  }

  // With `limit`, rows from there on are computed from the last row's operands.
  void addTile(OpBuilder &b, SumsOfBlock &block, const Part &part, Value row, int64_t rows, Value limit) {
    int64_t strideB = copiesB() ? plan.groups.width : plan.panelOfB;
    Tile tile = copiesB() ? Tile(loc, vector, rows, part.columns, /*wholeVectors=*/true) : tileOf(rows, part.columns);
    tile.prefetchB(prefetchSteps * strideB);
    SmallVector<Value> aRows;
    if (!plan.copiesA) {
      IndexMath math{b, loc};
      aRows = addressesOfRows(b, part.a, math.add(m0, row), rows, limit ? math.add(m0, limit) : Value());
    }
    auto step = [&](OpBuilder &body, Value term, int64_t plus, Sums &carried) {
      Value at = IndexMath{body, loc}.add(term, plus), first = plan.copiesA ? block.addressOfA(body, at, row) : Value();
      SmallVector<Value> aAddresses;
      for (int64_t r = 0; r < rows; ++r)
        aAddresses.push_back(plan.copiesA ? elementAddress(body, loc, op.element, first, r)
                                          : address(body, aRows[r], at));
      Value offset = IndexMath{body, loc}.mul(at, strideB);
      tile.multiplyAdd(body, carried, aAddresses,
                       copiesB() ? address(body, part.b, offset) : addressInB(body, part.b, offset));
    };
    Value zero = constantI64(b, loc, 0);
    auto oneStep = [&](OpBuilder &body, Value term, Sums &carried) { step(body, term, 0, carried); };
    Sums sums = plan.stepsPerPrefetch
                    ? addAndPrefetch(b, tile, zero, plan.terms, rowsToPrefetch(b, part.nextB, row, plan.terms),
                                     tile.zeros(b), step)
                    : accumulateOver(b, loc, zero, part.terms, 1, tile.zeros(b), oneStep);
    block.add(b, tile, sums, row, part.column);
  }

  void finishBlock(StageFunction &stage, OpBuilder &b, ArrayRef<Value> batch, const SumsOfBlock &block, Value group,
                   Value place, int64_t columns, Value rows) {
    Tile tile(loc, vector, 1, columns, true);
    loopOver(b, loc, IndexMath{b, loc}.constant(0), rows, 1, [&](OpBuilder &body, Value row) {
      IndexMath math{body, loc};
      Value column = math.mul(group, plan.groups.width);
      if (plan.prefetchesC) // also a few rows beyond the last one: prefetches never fault
        tile.forEachLine(body, [&](OpBuilder &, Value, int64_t v) {
          prefetchC(stage, body, batch, math.add(math.add(m0, row), rowsAhead), math.add(column, v * lanes));
        });
      for (int64_t v = 0; v < tile.vectors(); ++v) {
        Value sums = block.load(body, row, math.add(place, v * lanes));
        finish(stage, body, batch, math.add(m0, row), math.add(column, v * lanes),
               firstLanes(body, loc, sums, tile.lanesOf(v)));
      }
    });
  }

  // ---- Sums of all of k ----

  // The rows [m0, m1) of one group of columns.
  void emitBlock(StageFunction &stage, OpBuilder &b, ArrayRef<Value> batch, Value group, int64_t columns,
                 int64_t tileRows) {
    IndexMath math{b, loc};
    Value column = math.mul(group, plan.groups.width);
    Value aBase = corner(stage, b, op.a, batch);
    Value bBase = columnsOfB(stage, b, batch, column);
    forEachTile(b, m0, m1, tileRows, columns, [&](OpBuilder &body, Value row, int64_t rows, Value limit) {
      emitTile(stage, body, batch, aBase, bBase, row, column, rows, columns, limit);
    });
  }

  // One register tile. With `limit`, rows from there on are computed from the last row's operands and dropped.
  void emitTile(StageFunction &stage, OpBuilder &b, ArrayRef<Value> batch, Value aBase, Value bBase, Value row,
                Value column, int64_t rows, int64_t columns, Value limit) {
    Tile tile = tileOf(rows, columns);
    IndexMath math{b, loc};
    SmallVector<Value> aRows = addressesOfRows(b, aBase, row, rows, limit);
    int64_t strideB = strideOfB();
    // Prefetches also keep LLVM from moving the loads of all unrolled steps to the first one, where they spill.
    if (op.k * columns * elementBytes() > target.l1 / 2 || plan.stepsPerPrefetch)
      tile.prefetchB(prefetchSteps * strideB);
    auto step = [&](OpBuilder &body, Value k, int64_t plus, Sums &sums, ArrayRef<Value> scales = {}) {
      IndexMath inner{body, loc};
      Value aOffset = inner.mul(k, op.a.strideJ);
      SmallVector<Value> aAddresses;
      for (Value aRow : aRows)
        aAddresses.push_back(elementAddress(body, loc, op.element, address(body, aRow, aOffset), plus * op.a.strideJ));
      Value bAddress =
          elementAddress(body, loc, elementOfB(), addressInB(body, bBase, inner.mul(k, strideB)), plus * strideB);
      tile.multiplyAdd(body, sums, aAddresses, bAddress, scales);
    };
    if (!limit && plan.prefetchesC)
      tile.forEachLine(b, [&](OpBuilder &body, Value r, int64_t v) {
        IndexMath inner{body, loc};
        prefetchC(stage, body, batch, inner.add(row, r), inner.add(column, v * lanes));
      });
    Value nextB;
    if (plan.stepsPerPrefetch)
      nextB = rowsToPrefetch(b, columnsOfB(stage, b, batch, math.add(column, plan.groups.width)), row, op.k);
    Sums sums = tile.zeros(b);
    auto oneStep = [&](OpBuilder &body, Value k, Sums &carried) { step(body, k, 0, carried); };
    bool isLong = op.k > termsPerSum;
    auto addTerms = [&](OpBuilder &body, Value first, int64_t count, Sums its) {
      auto add = [&](OpBuilder &inner, Value i, int64_t plus, Sums &carried) {
        step(inner, IndexMath{inner, loc}.add(first, i), plus, carried);
      };
      if (!nextB)
        return accumulateOver(body, loc, count, unrollOf(tile), its, add);
      return addAndPrefetch(body, tile, first, count, nextB, its, add);
    };
    if (op.b.scales)
      sums = addBlocks(b, tile, scalesOfColumns(stage, b, column), sums, step);
    else if (op.rows == Matmul::Rows::K)
      sums = isLong ? accumulateInParts(b, loc, tile, k0, k1, sums, oneStep)
                    : accumulateOver(b, loc, k0, k1, 1, sums, oneStep);
    else
      sums = isLong ? accumulateParts(b, loc, tile, op.k, sums, addTerms)
                    : addTerms(b, constantI64(b, loc, 0), op.k, sums);
    bool loops = op.epilogue.isLoop(op.k) && !plan.splitK;
    tile.forEachRow(b, stage, sums, loops, limit ? math.sub(limit, row) : Value(),
                    [&](OpBuilder &body, Value r, ArrayRef<Value> vectors) {
                      IndexMath inner{body, loc};
                      for (auto [v, its] : llvm::enumerate(vectors)) {
                        Value at = inner.add(row, r), place = inner.add(column, v * lanes);
                        if (plan.splitK)
                          storePartial(stage, body, at, place, its);
                        else
                          finish(stage, body, batch, at, place, firstLanes(body, loc, its, tile.lanesOf(v)));
                      }
                    });
  }

  // Of the `terms` rows at `next`, those that the tile at `row` prefetches. All tiles together prefetch all rows.
  Value rowsToPrefetch(OpBuilder &b, Value next, Value row, int64_t terms) {
    IndexMath math{b, loc};
    Value first = math.mul(math.ceilDiv(row, plan.tileRows()), terms / plan.stepsPerPrefetch);
    return addressInB(b, next, math.mul(first, strideOfB()));
  }

  // Adds terms, and prefetches a row from `next` on each time after some of them. Term 0 goes with the first row.
  Sums addAndPrefetch(OpBuilder &b, const Tile &tile, Value first, int64_t count, Value next, Sums sums,
                      llvm::function_ref<void(OpBuilder &, Value i, int64_t plus, Sums &)> add) {
    int64_t size = plan.stepsPerPrefetch, whole = count / size * size;
    sums = accumulateOver(b, loc, constantI64(b, loc, 0), constantI64(b, loc, whole), size, sums,
                          [&](OpBuilder &body, Value begin, Sums &carried) {
                            IndexMath math{body, loc};
                            Value row =
                                addressInB(body, next, math.mul(math.div(math.add(first, begin), size), strideOfB()));
                            tile.prefetchRow(body, row);
                            carried = accumulateOver(body, loc, size, unrollOf(tile), carried,
                                                     [&](OpBuilder &inner, Value i, int64_t plus, Sums &its) {
                                                       add(inner, IndexMath{inner, loc}.add(begin, i), plus, its);
                                                     });
                          });
    return accumulateOver(b, loc, count - whole, unrollOf(tile), sums,
                          [&](OpBuilder &inner, Value i, int64_t plus, Sums &its) {
                            add(inner, IndexMath{inner, loc}.add(i, whole), plus, its);
                          });
  }

  // Adds all terms of a tile whose B is in blocks, with the scales of each block read once. `step` adds one term.
  Sums addBlocks(OpBuilder &b, const Tile &tile, Value scales, Sums sums,
                 llvm::function_ref<void(OpBuilder &, Value k, int64_t plus, Sums &, ArrayRef<Value> scales)> step) {
    auto scalesAt = [&](OpBuilder &inner, Value block) {
      Value row = IndexMath{inner, loc}.mul(block, strideOfB());
      return tile.loadScales(inner, elementAddress(inner, loc, inner.getF16Type(), scales, row));
    };
    // The blocks with terms from `first` on. Parts may begin and end within a block.
    auto addTerms = [&](OpBuilder &outer, Value first, int64_t count, Sums its) {
      IndexMath math{outer, loc};
      bool areWhole = termsOfPart(op.k) % SLUICE_BLOCK_ELEMENTS == 0;
      Value end = math.add(first, count);
      Value block = math.div(first, SLUICE_BLOCK_ELEMENTS), last = math.ceilDiv(end, SLUICE_BLOCK_ELEMENTS);
      return accumulateOver(outer, loc, block, last, 1, its, [&](OpBuilder &inner, Value which, Sums &carried) {
        Vectors ofBlock = scalesAt(inner, which);
        IndexMath within{inner, loc};
        Value begin = within.mul(which, SLUICE_BLOCK_ELEMENTS);
        if (areWhole) {
          carried = accumulateOver(inner, loc, SLUICE_BLOCK_ELEMENTS, unrollOf(tile), carried,
                                   [&](OpBuilder &body, Value i, int64_t plus, Sums &added) {
                                     step(body, IndexMath{body, loc}.add(begin, i), plus, added, ofBlock);
                                   });
          return;
        }
        Value from = within.max(begin, first), to = within.min(within.add(begin, SLUICE_BLOCK_ELEMENTS), end);
        carried = accumulateOver(inner, loc, from, to, 1, carried,
                                 [&](OpBuilder &body, Value k, Sums &added) { step(body, k, 0, added, ofBlock); });
      });
    };
    if (op.k > termsPerSum)
      return accumulateParts(b, loc, tile, op.k, sums, addTerms);
    return addTerms(b, constantI64(b, loc, 0), op.k, sums);
  }

  // The distance from one term of B to the next, in elements.
  int64_t strideOfB() const { return plan.panelOfB ? plan.panelOfB : op.b.strideI; }

  // The distance from one panel of B to the next, in elements.
  int64_t distanceOfPanels() const { return (plan.packed ? plan.packStage().count() : 1) * op.k * plan.panelOfB; }

  // Small tiles are unrolled to amortize the loop overhead.
  static int64_t unrollOf(const Tile &tile) { return tile.rows() * tile.vectors() >= 16 ? 2 : 4; }

  void storePartial(StageFunction &stage, OpBuilder &b, Value m, Value n, Value sums) {
    IndexMath math{b, loc};
    Value at =
        math.add(math.add(math.mul(m, plan.partials.width), n), math.mul(chunk, plan.partials.elementsPerChunk()));
    storeVector(b, loc, sums,
                address(b, stage.buffer(plan.partials.place.buffer), math.add(at, plan.partials.place.offset)));
  }

  void finish(StageFunction &stage, OpBuilder &b, ArrayRef<Value> batch, Value m, Value n, Value sums) {
    if (op.epilogue)
      return op.epilogue.store(stage, b, loc, indexOf(batch, m, n), sums);
    storeVector(b, loc, sums, addressInC(stage, b, batch, m, n));
  }

  // Prefetches what `finish` accesses.
  void prefetchC(StageFunction &stage, OpBuilder &b, ArrayRef<Value> batch, Value m, Value n) {
    if (op.epilogue)
      return op.epilogue.prefetch(stage, b, loc, indexOf(batch, m, n));
    prefetch(b, loc, addressInC(stage, b, batch, m, n), /*forWrite=*/true);
  }

  static SmallVector<Value> indexOf(ArrayRef<Value> batch, Value m, Value n) {
    SmallVector<Value> index(batch);
    index.append({m, n});
    return index;
  }

  Value addressInC(StageFunction &stage, OpBuilder &b, ArrayRef<Value> batch, Value m, Value n) {
    IndexMath math{b, loc};
    Value base = corner(stage, b, op.c, batch);
    Value at;
    if (op.c.layout == Matmul::Layout::Panels)
      at = math.add(math.add(math.mul(math.div(n, op.c.panel), op.m * op.c.panel), math.mul(m, op.c.panel)),
                    math.rem(n, op.c.panel));
    else
      at = math.add(math.mul(m, op.c.strideI), math.mul(n, op.c.strideJ));
    return address(b, base, at);
  }

  // ---- Addresses ----

  Value address(OpBuilder &b, Value base, Value offset) { return elementAddress(b, loc, op.element, base, offset); }

  // The addresses of `rows` rows of A from row `first` on. With `limit`, the last row before it replaces later ones.
  SmallVector<Value> addressesOfRows(OpBuilder &b, Value base, Value first, int64_t rows, Value limit) {
    IndexMath math{b, loc};
    SmallVector<Value> result;
    for (int64_t r = 0; r < rows; ++r) {
      Value at = math.add(first, r);
      if (limit)
        at = math.min(at, math.add(limit, -1));
      result.push_back(r == 0 || limit ? address(b, base, math.mul(at, op.a.strideI))
                                       : elementAddress(b, loc, op.element, result[0], r * op.a.strideI));
    }
    return result;
  }

  Type elementOf(const Matmul::Matrix &matrix) const {
    if (matrix.scales)
      return elementInBlocks(op.element.getContext());
    return matrix.half ? typeInMemory(matrix.half) : op.element;
  }
  Type elementOfB() const { return elementOf(op.b); }
  Value addressInB(OpBuilder &b, Value base, Value offset) {
    return elementAddress(b, loc, elementOfB(), base, offset);
  }

  Value corner(StageFunction &stage, OpBuilder &b, const Matmul::Matrix &matrix, ArrayRef<Value> batch) {
    IndexMath math{b, loc};
    Value offset = math.constant(matrix.place.offset);
    for (auto [index, stride] : llvm::zip(batch, matrix.batchStrides))
      offset = math.add(offset, math.mul(index, stride));
    return elementAddress(b, loc, elementOf(matrix), stage.buffer(matrix.place.buffer), offset);
  }

  Value columnsOfB(StageFunction &stage, OpBuilder &b, ArrayRef<Value> batch, Value column) {
    IndexMath math{b, loc};
    if (!plan.panelOfB)
      return address(b, corner(stage, b, op.b, batch), math.mul(column, op.b.strideJ));
    Value panel = math.div(column, plan.panelOfB), within = math.rem(column, plan.panelOfB);
    Value offset = math.add(math.mul(panel, distanceOfPanels()), within);
    if (!plan.packed)
      return addressInB(b, corner(stage, b, op.b, batch), offset);
    Value place = math.constant(0);
    for (auto [index, size, stride] : llvm::zip(batch, op.batch, op.b.batchStrides))
      if (stride != 0)
        place = math.add(math.mul(place, size), index);
    offset = math.add(offset, math.mul(place, op.k * plan.panelOfB));
    return address(b, stage.buffer(op.workspace.buffer), math.add(offset, op.workspace.offset));
  }

  // The scales of the first blocks of columns from `column` on.
  Value scalesOfColumns(StageFunction &stage, OpBuilder &b, Value column) {
    IndexMath math{b, loc};
    Value panel = math.div(column, plan.panelOfB), within = math.rem(column, plan.panelOfB);
    Value offset = math.add(math.mul(panel, distanceOfPanels() / SLUICE_BLOCK_ELEMENTS), within);
    return elementAddress(b, loc, b.getF16Type(), stage.buffer(op.b.scales->buffer),
                          math.add(offset, op.b.scales->offset));
  }

  StageModule module;
  std::string name;
  Location loc;
  const Matmul &op;
  MatmulPlan plan;
  const Target &target;
  int64_t lanes;
  VectorType vector;
  Value m0, m1, k0, k1, chunk; // of the task being emitted
};

} // namespace

Contraction emitMatmul(const StageModule &module, llvm::StringRef name, Location loc, const Matmul &matmul,
                       const Target &target) {
  return MatmulEmitter(module, name, loc, matmul, target).emit();
}

} // namespace sluice::cpu
