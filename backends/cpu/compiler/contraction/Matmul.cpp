// Matrix products. A task is a block of C's rows times one group of columns; B's group stays in the second-level cache
// while tiles of A pass over it; where k is too long for that, or terms lie so that they evict each other, the block is summed
// in parts of k (SumsOfBlock.h). Weights come in panels; B that is transposed, or whose long rows would evict each
// other while they are used often, is packed into panels by a stage in front. Where C is small and k is the batch, k is
// cut into a number of chunks given by the shape, summed by a stage behind.
#include "backends/cpu/compiler/VectorAccess.h"
#include "backends/cpu/compiler/contraction/Contraction.h"
#include "backends/cpu/compiler/contraction/IndexMath.h"
#include "backends/cpu/compiler/contraction/PackPanels.h"
#include "backends/cpu/compiler/contraction/SumPartials.h"
#include "backends/cpu/compiler/contraction/SumsOfBlock.h"
#include "backends/cpu/compiler/contraction/Tile.h"
#include "backends/cpu/compiler/contraction/TileChoice.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

namespace sluice::cpu {

using namespace mlir;

// Of a task that sums k in parts: columns, and terms of a part where rows of A are copied.
static constexpr int64_t mostColumns = 256, termsPerCopy = 256;

// Of A: for more, all of B is packed once rather than parts of it again for each block.
static constexpr int64_t fewRows = 192;

int64_t panelWidth(int64_t columns, int64_t lanes) { return std::min<int64_t>(64, llvm::alignTo(columns, lanes)); }

namespace {

class MatmulEmitter {
public:
  MatmulEmitter(const StageModule &module, llvm::StringRef name, Location loc, const Matmul &matmul,
                const Target &target)
      : module(module), name(name), loc(loc), op(matmul), target(target),
        lanes(target.lanes(matmul.element.getIntOrFloatBitWidth())), vector(VectorType::get({lanes}, matmul.element)) {}

  Contraction emit() {
    plan();
    if (packed)
      result.stages.push_back(emitPackPanels(module, name + "_pack", loc, packStage(), target));
    emitProducts();
    if (splitK)
      result.stages.push_back(emitSumPartials(module, name + "_sum", loc, partials, target,
                                              [&](StageFunction &stage, OpBuilder &b, Location, Value row, Value column,
                                                  Value sums) { finish(stage, b, {}, row, column, sums); }));
    describe();
    return result;
  }

private:
  enum { Full, Tail };

  int64_t elementBytes() const { return op.element.getIntOrFloatBitWidth() / 8; }
  int64_t batchCount() const {
    return std::accumulate(op.batch.begin(), op.batch.end(), int64_t(1), std::multiplies<>());
  }
  int64_t flops() const { return 2 * batchCount() * op.m * op.n * op.k; }

  // ---- Planning ----

  void plan() {
    chunks = chunksOfK();
    splitK = chunks > 1;
    copiesA = termsOfAAreRows();
    planPacking();
    inParts = copiesA || readsBAgain();
    terms = copiesA ? termsPerCopy : termsOfPart(op.k);
    TileProblem problem;
    problem.elementBits = op.element.getIntOrFloatBitWidth();
    problem.rows = op.m;
    problem.columns = op.n;
    problem.panel = inParts && !panelOfB ? panelWidth(op.n, lanes) : panelOfB;
    problem.depth = op.k;
    problem.rowBytes = op.a.strideI * elementBytes();
    groups = chooseTiles(problem, target);
    planTasks();
  }

  void planPacking() {
    panelOfB = op.b.layout == Matmul::Layout::Panels ? op.b.panel : 0;
    bool transposed =
        op.b.layout == Matmul::Layout::PanelsT || (op.b.layout == Matmul::Layout::Strided && op.b.strideJ != 1);
    // Of many rows of A, what is summed in parts reads columns of B again and again.
    packsParts = transposed && canSumInParts() && op.n >= lanes && op.m < fewRows;
    packed = (transposed && !packsParts) || (rowsOfBEvictEachOther() && op.m >= fewRows && !copiesA);
    if (!packed)
      return;
    panelOfB = panelWidth(op.n, lanes);
    result.workspaceBytes = packStage().elements() * elementBytes();
  }

  PackPanels packStage() const {
    PackPanels pack;
    pack.element = op.element;
    for (auto [size, stride] : llvm::zip(op.batch, op.b.batchStrides))
      if (stride != 0) { // one matrix serves all along a broadcast dimension
        pack.counts.push_back(size);
        pack.stridesT.push_back(stride);
      }
    pack.k = op.k;
    pack.n = op.n;
    pack.from = op.b.place;
    pack.to = op.workspace;
    pack.panel = panelOfB;
    pack.strideK = op.b.strideI;
    pack.strideN = op.b.strideJ;
    if (op.b.layout == Matmul::Layout::PanelsT) {
      pack.panelK = op.b.panel;
      pack.stridePanelK = op.n * op.b.panel;
      pack.strideK = 1;
      pack.strideN = op.b.panel;
    }
    return pack;
  }

  // While tiles of A pass over a group of B's columns.
  bool rowsOfBEvictEachOther() const {
    return op.b.layout == Matmul::Layout::Strided && op.rows != Matmul::Rows::K &&
           op.b.strideI * elementBytes() >= 1024 && op.k * op.n * elementBytes() > target.l1;
  }

  // Enough tasks for 16 threads, of a million multiply-adds or more.
  int64_t wantedTasks() const {
    int64_t wanted = std::clamp<int64_t>(flops() / (2 << 20), 1, 128);
    return flops() > (1 << 18) ? std::max<int64_t>(wanted, 16) : wanted;
  }

  // Whether several tiles of A would each read a group of B's columns from beyond the second-level cache.
  bool readsBAgain() const {
    if (!canSumInParts())
      return false;
    return packsParts || (panelOfB ? op.k * panelOfB * elementBytes() > target.l2 / 4 : rowsOfBEvictEachOther());
  }

  // Whether A's rows can be read a part of k at a time, and there are several tiles of them.
  bool canSumInParts() const {
    return op.rows != Matmul::Rows::K && op.m >= 16 && op.a.layout == Matmul::Layout::Strided && op.a.strideJ == 1;
  }

  // Whether terms of A are rows in memory, of a k that is long, so that its tiles would find nothing in the cache.
  bool termsOfAAreRows() const {
    return op.rows != Matmul::Rows::M && !splitK && op.k > termsPerSum && op.a.layout == Matmul::Layout::Strided &&
           op.a.strideI == 1 && op.a.strideJ != 1 && op.m >= 2 * lanes;
  }

  int64_t tileRows() const { return groups.full ? groups.rows : groups.tailRows; }

  // Those of a block of which there are enough for `wanted` tasks.
  int64_t rowsFor(int64_t wanted) const {
    int64_t tile = tileRows(), columnTasks = llvm::divideCeil(groups.count(), groupsOfTask) * batchCount();
    int64_t blocks = std::clamp<int64_t>(llvm::divideCeil(wanted, columnTasks), 1, llvm::divideCeil(op.m, tile));
    return std::max(tile, std::min<int64_t>(llvm::alignTo(llvm::divideCeil(op.m, blocks), tile), fittingRows()));
  }

  // Those whose terms, or those of a part, stay in a quarter of the second-level cache.
  int64_t fittingRows() const {
    int64_t fitting = target.l2 / 4 / std::max<int64_t>((inParts ? terms : op.k) * elementBytes(), 1);
    return inParts ? llvm::alignTo(fitting, tileRows()) : fitting / tileRows() * tileRows();
  }

  // Of the blocks that make enough tasks, those for which the least is copied: an element of A once for the columns of a
  // task, one of B once for its rows.
  void planBlocks() {
    double least = 0;
    int64_t most = std::clamp<int64_t>(mostColumns / groups.width, 1, groups.count()), best = 1;
    for (groupsOfTask = 1; groupsOfTask <= most; ++groupsOfTask) {
      int64_t columns = std::min(groupsOfTask * groups.width, op.n);
      int64_t rows = std::min(rowsFor(std::min<int64_t>(wantedTasks(), 16)), op.m);
      double copied = 1.0 / double(rows) + 1.0 / double(columns);
      if (groupsOfTask == 1 || copied < least) {
        least = copied;
        best = groupsOfTask;
      }
    }
    groupsOfTask = best;
    rowsOfBlock = rowsFor(std::min<int64_t>(wantedTasks(), 16));
  }

  // Rows enough in a task to use B's panel well.
  void planTasks() {
    int64_t wanted = wantedTasks();
    int64_t tile = tileRows();
    if (inParts)
      planBlocks();
    else
      rowsOfBlock = rowsFor(wanted);
    int64_t columnTasks = llvm::divideCeil(groups.count(), groupsOfTask) * batchCount();
    int64_t staticBlocks = llvm::divideCeil(op.m, rowsOfBlock);
    Stage stage{name + "_product", columnTasks, 0};
    switch (op.rows) {
    case Matmul::Rows::None:
      stage.tasks *= staticBlocks;
      break;
    case Matmul::Rows::M: {
      int64_t whole = std::lcm(tile, op.rowsFactor) / op.rowsFactor; // rows that are whole tiles
      stage.rowsPerTask = std::max<int64_t>(1, rowsOfBlock / op.rowsFactor);
      if (stage.rowsPerTask > whole)
        stage.rowsPerTask = stage.rowsPerTask / whole * whole;
      rowsOfBlock = stage.rowsPerTask * op.rowsFactor;
      break;
    }
    case Matmul::Rows::Batch:
      stage.tasks = columnTasks / op.batch.front() * staticBlocks;
      stage.rowsPerTask = std::clamp<int64_t>(op.batch.front() / op.rowsFactor * stage.tasks / wanted, 1,
                                              std::max<int64_t>(1, op.batch.front() / op.rowsFactor / 32));
      break;
    case Matmul::Rows::K:
      stage.tasks *= staticBlocks;
      if (splitK)
        planSplit(stage);
      break;
    }
    staticBlocksOfM = op.rows == Matmul::Rows::M ? 1 : staticBlocks;
    product = stage;
  }

  // Those of k are an order of sums, so the shape decides alone: the tiles counted here are not those chosen.
  int64_t chunksOfK() const {
    int64_t tiles = llvm::divideCeil(op.m, 8) * llvm::divideCeil(op.n, 4 * lanes);
    int64_t missing = std::min<int64_t>(llvm::divideCeil(wantedTasks(), tiles), 16);
    bool isCut = op.rows == Matmul::Rows::K && tiles < 16 && op.k >= 64 * missing && batchCount() == 1;
    return isCut ? missing : 1;
  }

  void planSplit(Stage &stage) {
    int64_t rowsOfCall = op.k / op.rowsFactor;
    stage.rowsPerTask = llvm::divideCeil(rowsOfCall, chunks);
    partials.element = op.element;
    partials.rows = op.m;
    partials.columns = op.n;
    partials.width = llvm::alignTo(op.n, lanes);
    partials.rowsPerChunk = stage.rowsPerTask;
    partials.place = {op.workspace.buffer,
                      op.workspace.offset +
                          static_cast<int64_t>(llvm::alignTo(result.workspaceBytes, 64)) / elementBytes()};
    int64_t filled = llvm::divideCeil(rowsOfCall, stage.rowsPerTask);
    result.workspaceBytes =
        llvm::alignTo(result.workspaceBytes, 64) + filled * partials.elementsPerChunk() * elementBytes();
  }

  void describe() {
    int64_t outer = op.rows == Matmul::Rows::None ? 1
                    : op.rows == Matmul::Rows::M  ? op.m
                    : op.rows == Matmul::Rows::K  ? op.k
                                                  : op.batch.front();
    int64_t rowsOfCall = std::max<int64_t>(1, outer / op.rowsFactor);
    int64_t a = batchCount() * op.m * op.k, b = batchCount() * op.k * op.n, c = batchCount() * op.m * op.n;
    int64_t perRow = 0;
    switch (op.rows) {
    case Matmul::Rows::None:
      break;
    case Matmul::Rows::M:
      perRow = a + c;
      break;
    case Matmul::Rows::K:
      perRow = a + b;
      break;
    case Matmul::Rows::Batch:
      perRow = a + b + c;
      break;
    }
    result.bytes = (a + b + c - perRow) * elementBytes();
    result.bytesPerRow = perRow * elementBytes() / rowsOfCall;
    (op.rows == Matmul::Rows::None ? result.flops : result.flopsPerRow) = flops() / rowsOfCall;
    result.lanes = filledLanes(op.n, lanes);
  }

  // ---- The product stage ----

  void emitProducts() {
    StageFunction stage = StageFunction::create(module, product.function, loc);
    stage.forEachTask([&](OpBuilder &b, Value task) { emitTask(stage, b, task); });
    result.stages.push_back(product);
  }

  void emitTask(StageFunction &stage, OpBuilder &b, Value task) {
    IndexMath math{b, loc};
    bool cut = product.rowsPerTask != 0;
    Value rowBlock = cut ? math.div(task, product.tasks) : math.constant(0);
    Value rest = cut ? math.rem(task, product.tasks) : task;
    int64_t groupTasks = llvm::divideCeil(groups.count(), groupsOfTask);
    Value group = math.mul(math.rem(rest, groupTasks), groupsOfTask);
    rest = math.div(rest, groupTasks);
    Value block = math.rem(rest, staticBlocksOfM);
    rest = math.div(rest, staticBlocksOfM);

    Value first = math.mul(rowBlock, product.rowsPerTask * op.rowsFactor);
    Value rowsOfCall = math.mul(stage.rows, op.rowsFactor);
    Value last = math.min(math.add(first, product.rowsPerTask * op.rowsFactor), rowsOfCall);
    if (op.rows == Matmul::Rows::M) {
      m0 = first, m1 = last;
    } else {
      m0 = math.mul(block, rowsOfBlock);
      m1 = math.min(math.add(m0, rowsOfBlock), math.constant(op.m));
    }
    if (op.rows == Matmul::Rows::K) {
      k0 = splitK ? first : math.constant(0);
      k1 = splitK ? last : rowsOfCall;
      chunk = rowBlock;
    }
    if (op.rows != Matmul::Rows::Batch)
      return emitGroup(stage, b, math.delinearize(rest, op.batch), group);
    SmallVector<Value> inner = math.delinearize(rest, ArrayRef<int64_t>(op.batch).drop_front());
    loopOver(b, loc, first, last, 1, [&](OpBuilder &body, Value outermost) {
      SmallVector<Value> batch = {outermost};
      batch.append(inner);
      emitGroup(stage, body, batch, group);
    });
  }

  void emitGroup(StageFunction &stage, OpBuilder &b, ArrayRef<Value> batch, Value group) {
    if (inParts)
      return emitBlocksInParts(stage, b, batch, group);
    if (!groups.tail)
      return emitBlock(stage, b, batch, group, groups.width, groups.rows);
    if (!groups.full)
      return emitBlock(stage, b, batch, group, groups.tail, groups.tailRows);
    IndexMath math{b, loc};
    Value full = math.less(group, math.constant(groups.full));
    ifThenElse(
        b, loc, full, [&](OpBuilder &then) { emitBlock(stage, then, batch, group, groups.width, groups.rows); },
        [&](OpBuilder &otherwise) { emitBlock(stage, otherwise, batch, group, groups.tail, groups.tailRows); });
  }

  // ---- Sums in parts ----

  // A part of k of a block.
  struct Part {
    Value a;           // where A's terms of the first row begin
    Value b;           // where B's terms of the first column begin
    Value terms, rows; // how many
    Value column;      // the first one among those of the task
    int64_t columns;
  };

  // The rows [m0, m1) of a task's groups, the first of which is `group`, so many at a time as have room on the stack.
  void emitBlocksInParts(StageFunction &stage, OpBuilder &b, ArrayRef<Value> batch, Value group) {
    int64_t most = std::max(fittingRows(), tileRows());
    SumsOfBlock block(stage, loc, vector, llvm::alignTo(std::min(rowsOfBlock, most), tileRows()),
                      groupsOfTask * groups.width);
    if (copiesA)
      block.makeRoomForA(stage, terms);
    if (!panelOfB)
      block.makeRoomForB(stage, terms, groups.width);
    if (rowsOfBlock <= most)
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
    Value aBase = address(b, corner(stage, b, op.a, batch), math.mul(m0, op.a.strideI));
    block.clear(b, math.mul(math.ceilDiv(rows, tileRows()), tileRows()));
    loopOver(b, loc, math.constant(0), end, terms, [&](OpBuilder &body, Value first) {
      IndexMath inner{body, loc};
      Value a = address(body, aBase, inner.mul(first, op.a.strideJ));
      Part part{a, {}, inner.sub(inner.min(inner.add(first, terms), end), first), rows, {}, 0};
      if (copiesA)
        block.copyA(body, a, op.a.strideJ, part.terms, rows);
      forEachGroup(body, group, [&](OpBuilder &inside, Value which, int64_t columns) {
        part.b = partOfB(stage, inside, batch, block, which, first, part.terms, columns);
        part.column = placeIn(inside, which, group);
        part.columns = columns;
        addPart(inside, block, part);
      });
    });
    forEachGroup(b, group, [&](OpBuilder &body, Value which, int64_t columns) {
      finishBlock(stage, body, batch, block, which, placeIn(body, which, group), columns, rows);
    });
  }

  // Where the terms from `first` on of a group of B's columns lie, or a copy of them.
  Value partOfB(StageFunction &stage, OpBuilder &b, ArrayRef<Value> batch, SumsOfBlock &block, Value group, Value first,
                Value terms, int64_t columns) {
    IndexMath math{b, loc};
    Value column = math.mul(group, groups.width);
    if (packsParts) {
      PackPanels pack = packStage();
      return block.packB(b, pack, address(b, corner(stage, b, op.b, batch), math.mul(column, pack.strideN)), first,
                         terms, columns);
    }
    Value from = address(b, columnsOfB(stage, b, batch, column), math.mul(first, strideOfB()));
    return panelOfB ? from : block.copyB(b, from, strideOfB(), terms, columns);
  }

  // The first column of a group among those of its task.
  Value placeIn(OpBuilder &b, Value which, Value first) {
    IndexMath math{b, loc};
    return math.mul(math.sub(which, first), groups.width);
  }

  // Those of a task: full ones, and the last of all.
  void forEachGroup(OpBuilder &b, Value first, llvm::function_ref<void(OpBuilder &, Value, int64_t)> body) {
    IndexMath math{b, loc};
    Value end = math.add(first, groupsOfTask), full = math.constant(groups.full);
    if (groups.full)
      loopOver(b, loc, first, math.min(end, full), 1,
               [&](OpBuilder &inner, Value which) { body(inner, which, groups.width); });
    if (groups.tail)
      ifThen(b, loc, math.less(full, end), [&](OpBuilder &inner) { body(inner, full, groups.tail); });
  }

  void addPart(OpBuilder &b, SumsOfBlock &block, const Part &part) {
    IndexMath math{b, loc};
    int64_t size = tileRows();
    Value whole = math.roundDown(part.rows, size);
    loopOver(b, loc, math.constant(0), whole, size,
             [&](OpBuilder &inner, Value row) { addTile(inner, block, part, row, size, /*last=*/false); });
    bool isStatic = op.rows != Matmul::Rows::M;
    if (int64_t rest = isStatic ? op.m % size : op.rowsFactor % size)
      ifThen(b, loc, math.less(whole, part.rows),
             [&](OpBuilder &inner) { addTile(inner, block, part, whole, isStatic ? rest : size, /*last=*/!isStatic); });
  }

  // With `last`, rows from the last one on are computed from its operands, and not read.
  void addTile(OpBuilder &b, SumsOfBlock &block, const Part &part, Value row, int64_t rows, bool last) {
    int64_t strideB = panelOfB ? panelOfB : groups.width;
    Tile tile(loc, vector, rows, part.columns, /*wholeVectors=*/true);
    tile.prefetchB(prefetchSteps * strideB);
    SmallVector<Value> aRows;
    for (int64_t r = 0; r < rows && !copiesA; ++r) {
      IndexMath math{b, loc};
      Value at = math.add(row, r);
      if (last)
        at = math.min(at, math.add(part.rows, -1));
      aRows.push_back(last || r == 0 ? address(b, part.a, math.mul(at, op.a.strideI))
                                     : elementAddress(b, loc, op.element, aRows[0], r * op.a.strideI));
    }
    Sums sums = accumulateOver(
        b, loc, constantI64(b, loc, 0), part.terms, 1, tile.zeros(b), [&](OpBuilder &step, Value term, Sums &carried) {
          Value first = copiesA ? block.addressOfA(step, term, row) : Value();
          SmallVector<Value> aAddresses;
          for (int64_t r = 0; r < rows; ++r)
            aAddresses.push_back(copiesA ? elementAddress(step, loc, op.element, first, r)
                                         : address(step, aRows[r], term));
          tile.multiplyAdd(step, carried, aAddresses, address(step, part.b, IndexMath{step, loc}.mul(term, strideB)));
        });
    block.add(b, tile, sums, row, part.column);
  }

  void finishBlock(StageFunction &stage, OpBuilder &b, ArrayRef<Value> batch, const SumsOfBlock &block, Value group,
                   Value place, int64_t columns, Value rows) {
    Tile tile(loc, vector, 1, columns, true);
    loopOver(b, loc, IndexMath{b, loc}.constant(0), rows, 1, [&](OpBuilder &body, Value row) {
      IndexMath math{body, loc};
      Value column = math.mul(group, groups.width);
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
    Value column = math.mul(group, groups.width);
    Value aBase = corner(stage, b, op.a, batch);
    Value bBase = columnsOfB(stage, b, batch, column);
    Value whole = math.add(m0, math.roundDown(math.sub(m1, m0), tileRows));
    bool dynamic = op.rows == Matmul::Rows::M && op.rowsFactor % tileRows != 0;
    int64_t rest = op.rows == Matmul::Rows::M ? op.rowsFactor % tileRows : op.m % tileRows;
    bool blocksAreWhole = rowsOfBlock % tileRows == 0;
    loopOver(b, loc, m0, whole, tileRows, [&](OpBuilder &body, Value row) {
      emitTile(stage, body, batch, aBase, bBase, row, column, tileRows, columns, Value());
    });
    if (!dynamic && blocksAreWhole && rest == 0)
      return;
    // Only blocks in the middle of a static C may end in a tile that is not the last one.
    dynamic |= !blocksAreWhole;
    ifThen(b, loc, math.less(whole, m1), [&](OpBuilder &body) {
      emitTile(stage, body, batch, aBase, bBase, whole, column, dynamic ? tileRows : rest, columns,
               dynamic ? m1 : Value());
    });
  }

  // One register tile. With `limit`, rows from there on are computed from the last row's operands and dropped.
  void emitTile(StageFunction &stage, OpBuilder &b, ArrayRef<Value> batch, Value aBase, Value bBase, Value row,
                Value column, int64_t rows, int64_t columns, Value limit) {
    Tile tile(loc, vector, rows, columns, panelOfB != 0);
    IndexMath math{b, loc};
    SmallVector<Value> aRows;
    for (int64_t r = 0; r < rows; ++r) {
      Value at = math.add(row, r);
      if (limit)
        at = math.min(at, math.add(limit, -1));
      aRows.push_back(limit || r == 0 ? address(b, aBase, math.mul(at, op.a.strideI))
                                      : elementAddress(b, loc, op.element, aRows[0], r * op.a.strideI));
    }
    int64_t strideB = strideOfB();
    if (op.k * columns * elementBytes() > target.l1 / 2)
      tile.prefetchB(prefetchSteps * strideB);
    auto step = [&](OpBuilder &body, Value k, int64_t plus, Sums &sums) {
      IndexMath inner{body, loc};
      Value aOffset = inner.mul(k, op.a.strideJ);
      SmallVector<Value> aAddresses;
      for (Value aRow : aRows)
        aAddresses.push_back(elementAddress(body, loc, op.element, address(body, aRow, aOffset), plus * op.a.strideJ));
      Value bAddress =
          elementAddress(body, loc, op.element, address(body, bBase, inner.mul(k, strideB)), plus * strideB);
      tile.multiplyAdd(body, sums, aAddresses, bAddress);
    };
    Sums sums = tile.zeros(b);
    auto oneStep = [&](OpBuilder &body, Value k, Sums &carried) { step(body, k, 0, carried); };
    bool isLong = op.k > termsPerSum;
    if (op.rows == Matmul::Rows::K)
      sums = isLong ? accumulateInParts(b, loc, tile, k0, k1, sums, oneStep)
                    : accumulateOver(b, loc, k0, k1, 1, sums, oneStep);
    else
      sums = isLong ? accumulateInParts(b, loc, tile, op.k, unrollOf(tile), sums, step)
                    : accumulateOver(b, loc, op.k, unrollOf(tile), sums, step);
    for (int64_t r = 0; r < rows; ++r) {
      Value at = math.add(row, r);
      auto finishRow = [&](OpBuilder &body) {
        for (int64_t v = 0; v < tile.vectors(); ++v) {
          Value place = IndexMath{body, loc}.add(column, v * lanes);
          Value vectorOfSums = sums[r * tile.vectors() + v];
          if (splitK)
            storePartial(stage, body, at, place, vectorOfSums);
          else
            finish(stage, body, batch, at, place, firstLanes(body, loc, vectorOfSums, tile.lanesOf(v)));
        }
      };
      if (limit)
        ifThen(b, loc, math.less(at, limit), finishRow);
      else
        finishRow(b);
    }
  }

  // From one term to the next.
  int64_t strideOfB() const { return panelOfB ? panelOfB : op.b.strideI; }

  // Small tiles are unrolled so that the loop's own instructions do not weigh.
  static int64_t unrollOf(const Tile &tile) { return tile.rows() * tile.vectors() >= 16 ? 2 : 4; }

  void storePartial(StageFunction &stage, OpBuilder &b, Value m, Value n, Value sums) {
    IndexMath math{b, loc};
    Value at = math.add(math.add(math.mul(m, partials.width), n), math.mul(chunk, partials.elementsPerChunk()));
    storeVector(b, loc, sums, address(b, stage.buffer(partials.place.buffer), math.add(at, partials.place.offset)));
  }

  void finish(StageFunction &stage, OpBuilder &b, ArrayRef<Value> batch, Value m, Value n, Value sums) {
    if (op.epilogue) {
      SmallVector<Value> index(batch);
      index.push_back(m);
      index.push_back(n);
      return op.epilogue(stage, b, loc, index, sums);
    }
    IndexMath math{b, loc};
    Value base = corner(stage, b, op.c, batch);
    Value at;
    if (op.c.layout == Matmul::Layout::Panels)
      at = math.add(math.add(math.mul(math.div(n, op.c.panel), op.m * op.c.panel), math.mul(m, op.c.panel)),
                    math.rem(n, op.c.panel));
    else
      at = math.add(math.mul(m, op.c.strideI), math.mul(n, op.c.strideJ));
    storeVector(b, loc, sums, address(b, base, at));
  }

  // ---- Addresses ----

  Value address(OpBuilder &b, Value base, Value offset) { return elementAddress(b, loc, op.element, base, offset); }

  Value corner(StageFunction &stage, OpBuilder &b, const Matmul::Matrix &matrix, ArrayRef<Value> batch) {
    IndexMath math{b, loc};
    Value offset = math.constant(matrix.place.offset);
    for (auto [index, stride] : llvm::zip(batch, matrix.batchStrides))
      offset = math.add(offset, math.mul(index, stride));
    return address(b, stage.buffer(matrix.place.buffer), offset);
  }

  Value columnsOfB(StageFunction &stage, OpBuilder &b, ArrayRef<Value> batch, Value column) {
    IndexMath math{b, loc};
    if (!panelOfB)
      return address(b, corner(stage, b, op.b, batch), math.mul(column, op.b.strideJ));
    Value panel = math.div(column, panelOfB), within = math.rem(column, panelOfB);
    if (!packed)
      return address(b, corner(stage, b, op.b, batch), math.add(math.mul(panel, op.k * panelOfB), within));
    Value matrix = math.mul(panel, packStage().count());
    Value place = math.constant(0);
    for (auto [index, size, stride] : llvm::zip(batch, op.batch, op.b.batchStrides))
      if (stride != 0)
        place = math.add(math.mul(place, size), index);
    Value offset = math.add(math.mul(math.add(matrix, place), op.k * panelOfB), within);
    return address(b, stage.buffer(op.workspace.buffer), math.add(offset, op.workspace.offset));
  }

  StageModule module;
  std::string name;
  Location loc;
  const Matmul &op;
  const Target &target;
  int64_t lanes;
  VectorType vector;
  Contraction result;

  ColumnGroups groups;
  int64_t panelOfB = 0;    // of what the product stage reads; 0: B's rows as they are
  bool packed = false;     // by a stage in front
  bool packsParts = false; // by each task
  int64_t chunks = 1;      // of k, each summed by tasks of its own
  bool splitK = false;     // there are several
  bool inParts = false;    // a task sums one part of k after another
  bool copiesA = false;    // and copies the rows that A's terms are
  int64_t terms = 0;       // of such a part
  int64_t rowsOfBlock = 1, staticBlocksOfM = 1, groupsOfTask = 1;
  Stage product;
  Partials partials;
  Value m0, m1, k0, k1, chunk; // of the task being emitted
};

} // namespace

Contraction emitMatmul(const StageModule &module, llvm::StringRef name, Location loc, const Matmul &matmul,
                       const Target &target) {
  return MatmulEmitter(module, name, loc, matmul, target).emit();
}

} // namespace sluice::cpu
