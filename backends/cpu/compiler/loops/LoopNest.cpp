#include "backends/cpu/compiler/loops/LoopNest.h"

#include "backends/cpu/compiler/loops/LaneEmitter.h"
#include "backends/cpu/compiler/loops/NestCost.h"
#include "ir/Layout.h"
#include <algorithm>

namespace sluice::cpu {

using namespace mlir;
using namespace loops;

// What one task reads and writes: it stays in the second-level cache, and outweighs handing out the task.
static constexpr double kBytesPerTask = 64 << 10;
// What a walk down columns takes of each row that it passes: some cache lines, which are fetched together.
static constexpr int64_t kColumns = 128;

namespace {

/// One dimension of the loops: a physical dimension larger than 1, or the chunks.
struct LoopDim {
  int64_t physical;              // -1: the chunks
  int64_t extent;                // at capacity
  bool rows;                     // runs over the rows there are (or their chunks)
  int64_t block = 0, blocks = 1; // how tasks cut it: `block` units each (vectors, in the lanes' dimension)
};

/// Lanes are over dims [from, end), in a loop inside of dims [0, at) and around dims [at, from); so many vectors of them
/// at once.
struct Way {
  size_t from, at;
  int64_t vectors = 1;
};

/// One nest being emitted.
struct Nest {
  LaneEmitter &emitter;
  Elements &elements;
  Scopes &scopes;

  Count constant(int64_t value) { return emitter.constant(value); }
  Count mul(Count a, Count b) { return emitter.arithmetic(CountOp::Mul, a, b); }
  /// The end of a block of `size` from `begin`, below `limit`.
  Count endOf(Count begin, Count size, Count limit) {
    return emitter.arithmetic(CountOp::Min, emitter.arithmetic(CountOp::Add, begin, size), limit);
  }
};

class NestEmitter {
public:
  NestEmitter(const LoopNest &nest, ModuleOp module, const Target &target, int64_t capacity)
      : nest(nest), module(module), vectorLanes(lanesOf(target)), lanes(vectorLanes), capacity(capacity) {
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
    if (first == 1 && dims[0].rows && dims[0].physical >= 0 && inner < 4 * vectorLanes)
      add(0);
    for (size_t from : {first, n - 1})
      if (from >= first && from < n)
        add(from);
    if (nest.folds || found.empty())
      add(n);
    return found;
  }

  /// With lanes over the dimensions from `from` on, in a loop further out, the nearest first. Where an outer dimension is
  /// folded (the softmax of columns), each lane then folds its own column once, and the loop inside walks down the
  /// columns with what was folded at hand.
  SmallVector<Way> waysDownColumns(size_t from) const {
    SmallVector<Way> found;
    for (size_t at = from; at-- > firstStatic();)
      found.push_back({from, at});
    return found;
  }
  /// The same with more lanes: rows lie in pages of their own, and so each trip takes more of one than a vector, unless
  /// more than an eighth of the lanes would then have nothing to do.
  Way widened(Way way) const {
    int64_t extent = 1;
    for (const LoopDim &dim : ArrayRef(dims).drop_front(way.from))
      extent *= dim.extent;
    auto filled = [&](int64_t vectors) { return llvm::alignTo(extent, vectors * vectorLanes); };
    while (way.vectors * vectorLanes < kColumns && 7 * filled(2 * way.vectors) <= 8 * filled(1))
      way.vectors *= 2;
    return way;
  }
  /// The dimensions from which on there may be lanes in such a loop.
  auto columns() const { return llvm::seq(std::min(firstStatic() + 1, dims.size()), dims.size()); }

  FailureOr<EmittedNest> emit(Way way, StringRef name, double *cost, bool keep);
  /// Whether the last one folds the same again in each trip of a loop.
  bool foldsAgain = false;

private:
  void cutIntoTasks();
  void emitTask(OpBuilder &b, Value task, StageFunction &stage, double *cost, bool keep);
  void placeTask(Nest &e, Count task);
  size_t firstStatic() const {
    size_t first = dims.size();
    while (first > 0 && !dims[first - 1].rows && dims[first - 1].physical >= 0)
      --first;
    return first;
  }
  void emitDims(Nest &e, size_t dim, size_t last, llvm::function_ref<void()> inside);
  void emitColumns(Nest &e);
  void emitLanes(Nest &e);
  void emitRowLanes(Nest &e);
  void emitBody(Nest &e);
  void place(size_t dim, AffineExpr index) { (dims[dim].physical < 0 ? chunk : index_[dims[dim].physical]) = index; }
  void placeLanes(AffineExpr flat);
  AffineExpr constantIndex(int64_t value) { return getAffineConstantExpr(value, module.getContext()); }
  bool lanesOverRows() const { return lanesFrom == 0 && !dims.empty() && dims[0].rows; }

  const LoopNest &nest;
  ModuleOp module;
  int64_t vectorLanes, lanes, capacity;
  SmallVector<ir::PhysicalDim> physical;
  SmallVector<int64_t> shape;
  SmallVector<LoopDim> dims;

  size_t lanesFrom = 0, lanesAt = 0;
  int64_t laneExtent = 1;
  int64_t tasks = 1, rowsPerTask = 0;
  Count rowTask;
  SmallVector<Count> blockOf;
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
    pieces = dims[i].block > 1 ? 1 : std::ceil(pieces / dims[i].blocks);
  };
  for (size_t i = rowsFirst ? 1 : 0; i < lanesAt; ++i)
    cut(i);
  if (lanesFrom < dims.size() && !(rowsFirst && lanesFrom == 0))
    cut(lanesFrom);
}

FailureOr<EmittedNest> NestEmitter::emit(Way way, StringRef name, double *cost, bool keep) {
  lanesFrom = way.from;
  lanesAt = way.at;
  lanes = way.vectors * vectorLanes;
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
  LaneEmitter emitter(b, nest.loc, stage, lanes, vectorLanes);
  Elements elements(emitter, nest.formulas, capacity);
  Nest e{emitter, elements, elements.scopes()};
  nest.prepare(elements);
  chunk = nullptr;
  index_.assign(shape.size(), constantIndex(0));
  placeTask(e, LaneEmitter::handleOf<Count>(task));
  emitDims(e, 0, lanesAt, [&] {
    if (lanesFrom == dims.size())
      emitBody(e);
    else
      lanesOverRows() ? emitRowLanes(e) : emitLanes(e);
  });
  failed = elements.hasFailed();
  foldsAgain = elements.foldsAgain();
  if (elements.hasTooManyLanes())
    *cost = INFINITY;
  if (nest.penalty)
    *cost += nest.penalty(elements);
  if (keep && nest.chosen)
    nest.chosen(elements);
}

// Which rows and which block of each dimension a task is.
void NestEmitter::placeTask(Nest &e, Count task) {
  auto divide = [&](CountOp op, Count number, int64_t by) { return e.emitter.arithmetic(op, number, e.constant(by)); };
  bool both = rowsPerTask && tasks > 1;
  rowTask = both ? divide(CountOp::Div, task, tasks) : task;
  Count rest = both ? divide(CountOp::Rem, task, tasks) : task;
  blockOf.assign(dims.size(), {});
  int64_t below = tasks;
  for (auto [dim, block] : llvm::zip(dims, blockOf)) {
    if (dim.blocks == 1)
      continue;
    below /= dim.blocks;
    block = divide(CountOp::Div, rest, below);
    rest = divide(CountOp::Rem, rest, below);
  }
}

// The loops over dims [i, end), in the order of memory.
void NestEmitter::emitDims(Nest &e, size_t i, size_t last, llvm::function_ref<void()> inside) {
  if (i == last)
    return inside();
  const LoopDim &dim = dims[i];
  Interval range{0, dim.extent - 1};
  Count begin = e.constant(0), end;
  int64_t trips = dim.block;
  if (i == 0 && dim.rows && (nest.chunks || rowsPerTask == 1)) {
    place(i, e.scopes.variable(rowTask, range));
    return emitDims(e, i + 1, last, inside);
  }
  if (i == 0 && dim.rows) {
    Count perTask = e.constant(rowsPerTask);
    begin = e.mul(rowTask, perTask);
    end = e.endOf(begin, perTask, e.emitter.rows());
    trips = rowsPerTask;
  } else if (dim.rows) {
    end = e.emitter.rows();
  } else if (dim.blocks > 1 && dim.block == 1) {
    place(i, e.scopes.variable(blockOf[i], range));
    return emitDims(e, i + 1, last, inside);
  } else if (dim.blocks > 1) {
    Count block = e.constant(dim.block);
    begin = e.mul(blockOf[i], block);
    end = e.endOf(begin, block, e.constant(dim.extent));
  } else {
    end = e.constant(dim.extent);
  }
  e.scopes.loop(begin, end, 1, trips, {}, [&](Count number, ArrayRef<Element>) {
    place(i, e.scopes.variable(number, range));
    emitDims(e, i + 1, last, inside);
    return Scopes::Carried();
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
void NestEmitter::emitColumns(Nest &e) {
  emitDims(e, lanesAt, lanesFrom, [&] { emitBody(e); });
}

// Whole vectors in a loop, then the lanes that are left.
void NestEmitter::emitLanes(Nest &e) {
  const LoopDim &dim = dims[lanesFrom];
  int64_t full = laneExtent / lanes, rest = laneExtent % lanes;
  Count begin = e.constant(0), end = e.constant(full);
  Condition isLast;
  int64_t trips = full;
  if (dim.blocks > 1) {
    Count block = e.constant(dim.block);
    begin = e.mul(blockOf[lanesFrom], block);
    end = e.endOf(begin, block, end);
    isLast = e.emitter.isEqual(blockOf[lanesFrom], dim.blocks - 1);
    trips = dim.block;
  }
  if (full > 0)
    e.scopes.loop(begin, end, 1, trips, {}, [&](Count number, ArrayRef<Element>) {
      AffineExpr first = e.scopes.variable(number, {0, full - 1}) * lanes;
      placeLanes(first + e.scopes.laneVariable());
      emitColumns(e);
      return Scopes::Carried();
    });
  if (rest > 0)
    e.scopes.block(isLast, {}, [&] {
      placeLanes(e.scopes.laneVariable(rest) + full * lanes);
      emitColumns(e);
      return Scopes::Carried();
    });
}

// Rows and what is below them, taken together: their number is known at run time only.
void NestEmitter::emitRowLanes(Nest &e) {
  int64_t inside = laneExtent / dims[0].extent;
  Count perTask = e.constant(rowsPerTask);
  Count firstRow = e.mul(rowTask, perTask);
  Count lastRow = e.endOf(firstRow, perTask, e.emitter.rows());
  Count begin = e.mul(firstRow, e.constant(inside)), end = e.mul(lastRow, e.constant(inside));
  int64_t trips = (rowsPerTask * inside + lanes - 1) / lanes;
  e.scopes.loop(begin, end, lanes, trips, {}, [&](Count number, ArrayRef<Element>) {
    AffineExpr first = e.scopes.variable(number, {0, laneExtent - 1});
    placeLanes(first + e.scopes.laneVariable(e.emitter.arithmetic(CountOp::Sub, end, number)));
    emitBody(e);
    return Scopes::Carried();
  });
}

// Everything is computed before anything is stored, so that a result may lie where an operand of the same shape lay.
void NestEmitter::emitBody(Nest &e) {
  SmallVector<AffineExpr> index(nest.space.getRank(), constantIndex(0));
  AffineExpr offset = constantIndex(0);
  for (auto [dim, size, place] : llvm::zip(physical, shape, index_)) {
    index[dim.logical] = index[dim.logical] + (dim.kind == ir::PhysicalDim::Div ? place * dim.tile : place);
    offset = offset * size + place;
  }
  // The last tile may be padded; padding is zero.
  SmallVector<AffineExpr> inside;
  for (auto [dim, expr] : llvm::enumerate(index))
    if (!nest.space.isDynamicDim(dim))
      inside.push_back(-expr + (nest.space.getDimSize(dim) - 1));

  SmallVector<std::pair<Memory, Element>> stores;
  for (const LoopNest::Output &output : nest.outputs) {
    SmallVector<Element> values;
    for (auto [i, memory] : llvm::enumerate(output.memories)) {
      auto element = [&, i = i] {
        if (values.empty())
          values = output.elements(e.elements, chunk, index);
        return values[i];
      };
      Element zero = e.elements.zero(memory.type.getElementType());
      stores.push_back({memory, e.elements.guarded(inside, element, zero)});
    }
  }
  if (chunk)
    offset = chunk * nest.chunks->elements + offset;
  for (auto &[memory, element] : stores)
    e.elements.store(memory, offset, element);
}

FailureOr<EmittedNest> emitLoopNest(const LoopNest &nest, ModuleOp module, const Target &target, int64_t capacity) {
  NestEmitter emitter(nest, module, target, capacity);
  SmallVector<Way> ways = emitter.ways();
  Way best = ways[0];
  double least = INFINITY;
  auto weigh = [&](Way way) {
    double cost = 0;
    FailureOr<EmittedNest> emitted = emitter.emit(way, nest.name, &cost, /*keep=*/false);
    module.lookupSymbol(nest.name)->erase();
    if (succeeded(emitted) && cost < least)
      least = cost, best = way;
    return LogicalResult(emitted);
  };
  bool askColumns = false;
  if (ways.size() > 1)
    for (Way way : ways) {
      if (failed(weigh(way)))
        return failure();
      askColumns |= emitter.foldsAgain;
    }
  for (size_t from : askColumns ? emitter.columns() : llvm::seq<size_t>(0, 0))
    for (Way way : emitter.waysDownColumns(from)) {
      if (failed(weigh(way)))
        return failure();
      if (!emitter.foldsAgain) // further out the columns would only be further apart
        break;
    }
  if (best.at < best.from) {
    least = INFINITY;
    if (failed(weigh(emitter.widened(best))))
      return failure();
  }
  double cost = 0;
  return emitter.emit(best, nest.name, &cost, /*keep=*/true);
}

} // namespace sluice::cpu
