#include "backends/cpu/compiler/loops/LoopNest.h"

#include "backends/cpu/compiler/loops/NestCost.h"
#include "ir/Layout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <algorithm>

namespace sluice::cpu {

using namespace mlir;

// What one task reads and writes: it stays in the second-level cache, and outweighs handing out the task.
static constexpr double kBytesPerTask = 64 << 10;

namespace {

/// One dimension of the loops: a physical dimension larger than 1, or the chunks.
struct LoopDim {
  int64_t physical;              // -1: the chunks
  int64_t extent;                // at capacity
  bool rows;                     // runs over the rows there are (or their chunks)
  int64_t block = 0, blocks = 1; // how tasks cut it: `block` units each (vectors, in the lanes' dimension)
};

/// Lanes are over dims [from, end), in a loop inside of dims [0, at) and around dims [at, from).
struct Way {
  size_t from, at;
};

class NestEmitter {
public:
  NestEmitter(const LoopNest &nest, ModuleOp module, const Target &target, int64_t capacity)
      : nest(nest), module(module), lanes(lanesOf(target)), capacity(capacity) {
    physical = *ir::getPhysicalDims(nest.space);
    shape = ir::getPhysicalShape(nest.space, capacity);
    if (nest.chunks)
      dims.push_back({-1, nest.chunks->maxChunks, nest.chunks->overRows});
    for (auto [position, extent] : llvm::enumerate(shape)) {
      bool rows = nest.space.isDynamicDim(physical[position].logical);
      if (extent > 1 || rows)
        dims.push_back({int64_t(position), extent, rows});
    }
  }

  /// With loops in the order of memory; without lanes, too, where there is something to fold.
  SmallVector<Way> ways() const {
    size_t n = dims.size(), first = firstStatic();
    if (n == 0)
      return {{0, 0}};
    SmallVector<Way> found;
    int64_t inner = 1;
    for (size_t i = first; i < n; ++i)
      inner *= dims[i].extent;
    auto add = [&](size_t from) {
      if (llvm::none_of(found, [&](Way way) { return way.from == from; }))
        found.push_back({from, from});
    };
    if (first == 1 && dims[0].rows && dims[0].physical >= 0 && inner < 4 * lanes)
      add(0);
    for (size_t from : {first, n - 1})
      if (from >= first && from < n)
        add(from);
    if (nest.folds || found.empty())
      add(n);
    return found;
  }

  /// With the loop over lanes further out. Where an outer dimension is folded (the softmax of columns), each lane then
  /// folds its own column once, and the loop inside walks down the columns with what was folded at hand.
  SmallVector<Way> waysDownColumns() const {
    SmallVector<Way> found;
    for (size_t from = firstStatic() + 1; from < dims.size(); ++from)
      for (size_t at = firstStatic(); at < from; ++at)
        found.push_back({from, at});
    return found;
  }

  FailureOr<EmittedNest> emit(Way way, StringRef name, double *cost, bool keep);
  /// Whether a nest so far folded the same again in each trip of a loop.
  bool foldsAgain = false;

private:
  void cutIntoTasks();
  void emitTask(OpBuilder &b, Value task, StageFunction &stage, double *cost, bool keep);
  size_t firstStatic() const {
    size_t first = dims.size();
    while (first > 0 && !dims[first - 1].rows && dims[first - 1].physical >= 0)
      --first;
    return first;
  }
  void emitDims(Evaluator &e, size_t dim, size_t last, llvm::function_ref<void()> inside);
  void emitColumns(Evaluator &e);
  void emitLanes(Evaluator &e);
  void emitRowLanes(Evaluator &e);
  void emitBody(Evaluator &e);
  void place(size_t dim, AffineExpr index) { (dims[dim].physical < 0 ? chunk : index_[dims[dim].physical]) = index; }
  void placeLanes(AffineExpr flat);
  bool lanesOverRows() const { return lanesFrom == 0 && !dims.empty() && dims[0].rows; }

  const LoopNest &nest;
  ModuleOp module;
  int64_t lanes, capacity;
  SmallVector<ir::PhysicalDim> physical;
  SmallVector<int64_t> shape;
  SmallVector<LoopDim> dims;

  size_t lanesFrom = 0, lanesAt = 0;
  int64_t laneExtent = 1;
  int64_t tasks = 1, rowsPerTask = 0;
  Value rowTask;
  SmallVector<Value> blockOf;
  AffineExpr chunk;
  SmallVector<AffineExpr> index_; // physical
  bool failed = false;
};

} // namespace

// Cuts the outermost dimensions until a task is small enough. Rows come in tasks of so many rows; all else in blocks.
void NestEmitter::cutIntoTasks() {
  double wanted = std::max(1.0, kBytesPerTask / nest.bytesPerElement);
  double inside = 1; // elements below the rows
  for (const LoopDim &dim : dims)
    inside *= dim.rows ? 1 : dim.extent;
  tasks = 1;
  rowsPerTask = 0;
  for (LoopDim &dim : dims)
    dim.block = dim.extent, dim.blocks = 1;
  bool rowsFirst = !dims.empty() && dims[0].rows;
  if (rowsFirst && nest.chunks) {
    rowsPerTask = nest.chunks->chunk;
  } else if (rowsFirst) {
    rowsPerTask = std::clamp<int64_t>(wanted / inside, 1, capacity);
    if (lanesOverRows() && rowsPerTask * inside < lanes)
      rowsPerTask = std::min<int64_t>(capacity, std::max<int64_t>(1, lanes / inside));
  }
  for (const LoopDim &dim : ArrayRef(dims).drop_front(rowsFirst ? 1 : 0))
    if (dim.rows)
      inside *= dim.extent;
  double pieces = std::ceil(inside / wanted);
  auto cut = [&](size_t i) {
    if (dims[i].rows || pieces <= 1)
      return;
    int64_t units = i == lanesFrom ? (laneExtent + lanes - 1) / lanes : dims[i].extent;
    int64_t blocks = std::min<int64_t>(units, pieces);
    dims[i].block = (units + blocks - 1) / blocks;
    dims[i].blocks = (units + dims[i].block - 1) / dims[i].block;
    tasks *= dims[i].blocks;
    pieces = std::ceil(pieces / dims[i].blocks);
  };
  for (size_t i = rowsFirst ? 1 : 0; i < lanesAt; ++i)
    cut(i);
  if (lanesFrom < dims.size() && !(rowsFirst && lanesFrom == 0))
    cut(lanesFrom);
}

FailureOr<EmittedNest> NestEmitter::emit(Way way, StringRef name, double *cost, bool keep) {
  lanesFrom = way.from;
  lanesAt = way.at;
  laneExtent = 1;
  for (const LoopDim &dim : ArrayRef(dims).drop_front(lanesFrom))
    laneExtent *= dim.extent;
  cutIntoTasks();
  StageFunction stage = StageFunction::create(module, name, nest.loc);
  stage.forEachTask([&](OpBuilder &b, Value task) { emitTask(b, task, stage, cost, keep); });
  if (failed)
    return failure();
  double runs = double(tasks) * (rowsPerTask ? (capacity + rowsPerTask - 1) / rowsPerTask : 1);
  *cost += costOf(stage.func) * runs;
  EmittedNest result;
  result.stage = {name.str(), tasks, rowsPerTask};
  if (lanesFrom < dims.size() && !lanesOverRows())
    result.lanes = double(laneExtent) / ((laneExtent + lanes - 1) / lanes * lanes);
  return result;
}

void NestEmitter::emitTask(OpBuilder &b, Value task, StageFunction &stage, double *cost, bool keep) {
  Evaluator e(b, nest.loc, stage, lanes, capacity);
  nest.prepare(e);
  chunk = nullptr;
  index_.assign(shape.size(), e.constantIndex(0));
  Value sub = task;
  if (rowsPerTask && tasks > 1) {
    Value perRows = e.constantIndex64(tasks);
    rowTask = b.create<arith::DivUIOp>(nest.loc, task, perRows);
    sub = b.create<arith::RemUIOp>(nest.loc, task, perRows);
  } else {
    rowTask = task;
  }
  blockOf.assign(dims.size(), nullptr);
  int64_t below = tasks;
  for (auto [dim, block] : llvm::zip(dims, blockOf)) {
    if (dim.blocks == 1)
      continue;
    below /= dim.blocks;
    block = b.create<arith::DivUIOp>(nest.loc, sub, e.constantIndex64(below));
    sub = b.create<arith::RemUIOp>(nest.loc, sub, e.constantIndex64(below));
  }
  emitDims(e, 0, lanesAt, [&] {
    if (lanesFrom == dims.size())
      emitBody(e);
    else
      lanesOverRows() ? emitRowLanes(e) : emitLanes(e);
  });
  failed = e.hasFailed();
  foldsAgain |= e.foldsAgain();
  if (nest.penalty)
    *cost += nest.penalty(e);
  if (keep && nest.chosen)
    nest.chosen(e);
}

// The loops over dims [i, end), in the order of memory.
void NestEmitter::emitDims(Evaluator &e, size_t i, size_t last, llvm::function_ref<void()> inside) {
  OpBuilder &b = e.b();
  if (i == last)
    return inside();
  const LoopDim &dim = dims[i];
  Interval range{0, dim.extent - 1};
  Value begin = e.constantIndex64(0), end;
  int64_t trips = dim.block;
  if (i == 0 && dim.rows && (nest.chunks || rowsPerTask == 1)) {
    place(i, e.variable(rowTask, range));
    return emitDims(e, i + 1, last, inside);
  }
  if (i == 0 && dim.rows) {
    Value perTask = e.constantIndex64(rowsPerTask);
    begin = b.create<arith::MulIOp>(nest.loc, rowTask, perTask);
    end = b.create<arith::MinSIOp>(nest.loc, b.create<arith::AddIOp>(nest.loc, begin, perTask), e.rowsValue());
    trips = rowsPerTask;
  } else if (dim.rows) {
    end = e.rowsValue();
  } else if (dim.blocks > 1 && dim.block == 1) {
    place(i, e.variable(blockOf[i], range));
    return emitDims(e, i + 1, last, inside);
  } else if (dim.blocks > 1) {
    Value block = e.constantIndex64(dim.block);
    begin = b.create<arith::MulIOp>(nest.loc, blockOf[i], block);
    end = b.create<arith::MinSIOp>(nest.loc, b.create<arith::AddIOp>(nest.loc, begin, block),
                                   e.constantIndex64(dim.extent));
  } else {
    end = e.constantIndex64(dim.extent);
  }
  e.loop(begin, end, 1, trips, {}, [&](Value iv, ValueRange) {
    place(i, e.variable(iv, range));
    emitDims(e, i + 1, last, inside);
    return Evaluator::Carried();
  });
}

void NestEmitter::placeLanes(AffineExpr flat) {
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > lanesFrom;) {
    AffineExpr position = flat.floorDiv(stride);
    place(i, i == lanesFrom ? position : position % dims[i].extent);
    stride *= dims[i].extent;
  }
}

// What is inside of the loop over lanes.
void NestEmitter::emitColumns(Evaluator &e) {
  emitDims(e, lanesAt, lanesFrom, [&] { emitBody(e); });
}

// Whole vectors in a loop, then the lanes that are left.
void NestEmitter::emitLanes(Evaluator &e) {
  OpBuilder &b = e.b();
  const LoopDim &dim = dims[lanesFrom];
  int64_t full = laneExtent / lanes, rest = laneExtent % lanes;
  Value begin = e.constantIndex64(0), end = e.constantIndex64(full), isLast;
  int64_t trips = full;
  if (dim.blocks > 1) {
    Value block = e.constantIndex64(dim.block);
    begin = b.create<arith::MulIOp>(nest.loc, blockOf[lanesFrom], block);
    end = b.create<arith::MinSIOp>(nest.loc, b.create<arith::AddIOp>(nest.loc, begin, block), end);
    isLast = b.create<arith::CmpIOp>(nest.loc, arith::CmpIPredicate::eq, blockOf[lanesFrom],
                                     e.constantIndex64(dim.blocks - 1));
    trips = dim.block;
  }
  if (full > 0)
    e.loop(begin, end, 1, trips, {}, [&](Value iv, ValueRange) {
      AffineExpr first = e.variable(iv, {0, full - 1}) * lanes;
      placeLanes(first + e.laneVariable());
      emitColumns(e);
      return Evaluator::Carried();
    });
  if (rest > 0)
    e.block(isLast, {}, [&] {
      placeLanes(e.laneVariable(rest) + full * lanes);
      emitColumns(e);
      return Evaluator::Carried();
    });
}

// Rows and what is below them, taken together: their number is known at run time only.
void NestEmitter::emitRowLanes(Evaluator &e) {
  OpBuilder &b = e.b();
  int64_t inside = laneExtent / dims[0].extent;
  Value perTask = e.constantIndex64(rowsPerTask);
  Value firstRow = b.create<arith::MulIOp>(nest.loc, rowTask, perTask);
  Value lastRow =
      b.create<arith::MinSIOp>(nest.loc, b.create<arith::AddIOp>(nest.loc, firstRow, perTask), e.rowsValue());
  Value begin = b.create<arith::MulIOp>(nest.loc, firstRow, e.constantIndex64(inside));
  Value end = b.create<arith::MulIOp>(nest.loc, lastRow, e.constantIndex64(inside));
  e.loop(begin, end, lanes, (rowsPerTask * inside + lanes - 1) / lanes, {}, [&](Value iv, ValueRange) {
    AffineExpr first = e.variable(iv, {0, laneExtent - 1});
    placeLanes(first + e.laneVariable(b.create<arith::SubIOp>(nest.loc, end, iv).getResult()));
    emitBody(e);
    return Evaluator::Carried();
  });
}

// Everything is computed before anything is stored, so that a result may lie where an operand of the same shape lay.
void NestEmitter::emitBody(Evaluator &e) {
  SmallVector<AffineExpr> index(nest.space.getRank(), e.constantIndex(0));
  AffineExpr offset = e.constantIndex(0);
  for (auto [dim, size, place] : llvm::zip(physical, shape, index_)) {
    index[dim.logical] = index[dim.logical] + (dim.kind == ir::PhysicalDim::Div ? place * dim.tile : place);
    offset = offset * size + place;
  }
  // The last tile may be padded; padding is zero.
  SmallVector<AffineExpr> inside;
  for (auto [dim, expr] : llvm::enumerate(index))
    if (!nest.space.isDynamicDim(dim))
      inside.push_back(-expr + (nest.space.getDimSize(dim) - 1));

  SmallVector<std::pair<Memory, Value>> stores;
  for (const LoopNest::Output &output : nest.outputs) {
    SmallVector<Value> values;
    for (auto [i, memory] : llvm::enumerate(output.memories)) {
      auto element = [&, i = i] {
        if (values.empty())
          values = output.elements(e, chunk, index);
        return values[i];
      };
      Value zero = e.constant(0.0, memory.type.getElementType());
      stores.push_back({memory, e.guarded(inside, element, zero)});
    }
  }
  if (chunk)
    offset = chunk * nest.chunks->elements + offset;
  for (auto &[memory, value] : stores)
    e.store(memory, offset, value);
}

FailureOr<EmittedNest> emitLoopNest(const LoopNest &nest, ModuleOp module, const Target &target, int64_t capacity) {
  NestEmitter emitter(nest, module, target, capacity);
  SmallVector<Way> ways = emitter.ways();
  Way best = ways[0];
  double least = INFINITY;
  auto choose = [&](ArrayRef<Way> among) {
    for (Way way : among) {
      double cost = 0;
      FailureOr<EmittedNest> emitted = emitter.emit(way, nest.name, &cost, /*keep=*/false);
      module.lookupSymbol(nest.name)->erase();
      if (failed(emitted))
        return failure();
      if (cost < least)
        least = cost, best = way;
    }
    return success();
  };
  if (ways.size() > 1 && failed(choose(ways)))
    return failure();
  if (emitter.foldsAgain && failed(choose(emitter.waysDownColumns())))
    return failure();
  double cost = 0;
  return emitter.emit(best, nest.name, &cost, /*keep=*/true);
}

} // namespace sluice::cpu
