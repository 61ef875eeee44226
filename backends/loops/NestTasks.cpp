#include "backends/loops/NestTasks.h"

#include <algorithm>
#include <cmath>

namespace sluice::loops {

using namespace mlir;

/// Nests with `borders` go down columns only if the elements of all columns have at most this size, so that they stay
/// in the second-level cache.
static constexpr double kBytesDownColumns = 512 << 10;

struct NestTasks::Task {
  Emitter &emitter;
  Elements &elements;
  ArrayRef<Dim> dims;
  Scopes &scopes;
  Count rowTask = {};
  SmallVector<Count> blockOf = {};    // of each dim
  AffineExpr chunk = nullptr;         // or part
  SmallVector<AffineExpr> index = {}; // physical

  Count constant(int64_t value) { return emitter.constant(value); }
  Count mul(Count a, Count b) { return emitter.arithmetic(CountOp::Mul, a, b); }
  /// The end of a block of `size` from `begin`, below `limit`.
  Count endOf(Count begin, Count size, Count limit) {
    return emitter.arithmetic(CountOp::Min, emitter.arithmetic(CountOp::Add, begin, size), limit);
  }
  void place(size_t dim, AffineExpr at) {
    if (dims[dim].physical >= 0)
      index[dims[dim].physical] = at;
    else
      chunk = dim == 0 ? at : chunk * dims[dim].extent + at;
  }
};

NestTasks::NestTasks(const LoopNest &nest, int64_t lanes, double bytesPerTask, int64_t enoughTasks, int64_t capacity)
    : nest(nest), lanesOfGroup(lanes), enoughTasks(enoughTasks), capacity(capacity), bytesPerTask(bytesPerTask),
      physical(*ir::getPhysicalDims(nest.space)), shape(ir::getPhysicalShape(nest.space, capacity)) {
  joinTiles();
  if (nest.chunks)
    dims.push_back({-1, nest.chunks->maxChunks / nest.chunks->parts, nest.chunks->overRows});
  if (int64_t parts = nest.chunks ? nest.chunks->parts : nest.parts; parts > 1)
    dims.push_back({-1, parts, /*rows=*/false});
  for (auto [position, size] : llvm::enumerate(shape)) {
    const ir::PhysicalDim &dim = physical[position];
    bool rows = nest.space.isDynamicDim(dim.logical);
    bool isPadded = dim.kind == ir::PhysicalDim::Whole && !rows;
    int64_t extent = isPadded ? nest.space.getDimSize(dim.logical) : size;
    if (extent > 1 || rows)
      dims.push_back({int64_t(position), extent, rows});
  }
}

/// A dimension of adjacent tiles is one dimension followed by padding, which is not written.
void NestTasks::joinTiles() {
  for (size_t i = 0; i + 1 < physical.size(); ++i) {
    if (!ir::areJoinedTiles(physical[i], physical[i + 1]))
      continue;
    physical[i] = {ir::PhysicalDim::Whole, physical[i].logical, 0};
    shape[i] *= shape[i + 1];
    physical.erase(physical.begin() + int64_t(i) + 1);
    shape.erase(shape.begin() + int64_t(i) + 1);
  }
}

AffineExpr NestTasks::constantIndex(int64_t value) const {
  return getAffineConstantExpr(value, nest.space.getContext());
}

//===- ways -------------------------------------------------------------------------------------------------------===//

/// The first of the last dimensions whose sizes are known.
size_t NestTasks::firstStatic() const {
  size_t first = dims.size();
  while (first > 0 && !dims[first - 1].rows && dims[first - 1].physical >= 0)
    --first;
  return first;
}

int64_t NestTasks::extentFrom(size_t dim) const {
  int64_t extent = 1;
  for (const Dim &one : ArrayRef(dims).drop_front(dim))
    extent *= one.extent;
  return extent;
}

// With loops in memory order; also without lanes if there is a fold.
SmallVector<NestTasks::Way> NestTasks::ways() const {
  size_t n = dims.size(), first = firstStatic();
  if (n == 0)
    return {{0, 0}};
  SmallVector<Way> found;
  auto add = [&](size_t from) {
    if (llvm::none_of(found, [&](Way one) { return one.from == from; }))
      found.push_back({from, from});
  };
  if (first == 1 && dims[0].rows && dims[0].physical >= 0 && extentFrom(first) < 4 * lanesOfGroup)
    add(0);
  for (size_t from : {first, n - 1})
    if (from >= first && from < n)
      add(from);
  if (nest.folds || found.empty())
    add(n);
  return found;
}

// Mappings with lanes over the dimensions from `from` on, whose loop is around some of the outer dimensions, the
// nearest first. If an outer dimension is folded (the softmax of columns), each lane then folds its column once, and
// the inner loop iterates down the columns with the folded values.
SmallVector<NestTasks::Way> NestTasks::waysDownColumns(size_t from) const {
  SmallVector<Way> found;
  for (size_t at = from; at-- > firstStatic();)
    if (nest.borders.empty() || double(extentFrom(at)) * nest.bytesPerElement <= kBytesDownColumns)
      found.push_back({from, at});
  return found;
}

FailureOr<NestTasks::Way> NestTasks::choose(llvm::function_ref<FailureOr<Weight>(Way)> weigh) const {
  SmallVector<Way> inOrder = ways();
  Way best = inOrder[0];
  if (inOrder.size() == 1)
    return best;
  double least = INFINITY;
  auto consider = [&](Way one) {
    FailureOr<Weight> weight = weigh(one);
    if (succeeded(weight) && weight->cost < least) {
      least = weight->cost;
      best = one;
    }
    return weight;
  };
  bool foldsAgain = false;
  for (Way one : inOrder) {
    FailureOr<Weight> weight = consider(one);
    if (failed(weight))
      return failure();
    foldsAgain |= weight->foldsAgain;
  }
  for (size_t from = firstStatic() + 1; foldsAgain && from < dims.size(); ++from)
    for (Way one : waysDownColumns(from)) {
      FailureOr<Weight> weight = consider(one);
      if (failed(weight))
        return failure();
      if (!weight->foldsAgain) // a loop further out would only increase the distance between reads
        break;
    }
  return best;
}

std::optional<NestTasks::Way> NestTasks::aroundInnermost() const {
  size_t first = firstStatic();
  if (nest.folds || nest.body || nest.chunks || dims.size() < first + 2 || dims.back().extent >= lanesOfGroup)
    return std::nullopt;
  return Way{first, first, 1, /*inner=*/1};
}

NestTasks::Way NestTasks::widened(Way way, int64_t most) const {
  int64_t extent = extentFrom(way.from);
  auto filled = [&](int64_t groups) { return llvm::alignTo(extent, groups * lanesOfGroup); };
  while (2 * way.groups * lanesOfGroup <= most && 3 * filled(2 * way.groups) <= 4 * filled(1))
    way.groups *= 2;
  return way;
}

void NestTasks::take(Way taken) {
  way = taken;
  lanes_ = way.groups * lanesOfGroup;
  laneExtent = extentFrom(way.from) / extentFrom(endOfLanes());
  cutIntoTasks();
}

int64_t NestTasks::tasksAtCapacity() const {
  return tasks_ * (rowsPerTask_ ? llvm::divideCeil(capacity, rowsPerTask_) : 1);
}

double NestTasks::filledLanes() const {
  if (way.from == dims.size() || lanesOverRows())
    return 1;
  return double(laneExtent) / double(llvm::alignTo(laneExtent, lanes_));
}

//===- tasks ------------------------------------------------------------------------------------------------------===//

/// The size of the blocks that split this many units into at most this many blocks. The blocks are equal, unless equal
/// blocks would be about twice as large.
static int64_t blockOf(int64_t units, int64_t blocks) {
  int64_t least = llvm::divideCeilSigned(units, blocks), block = least;
  while (units % block != 0 && block < 2 * least)
    ++block;
  return units % block == 0 ? block : least;
}

// Splits the outermost dimensions until a task is small enough. If rows are outermost, a task has some of them. Other
// dimensions are split into blocks.
void NestTasks::cutIntoTasks() {
  double wanted = std::max(1.0, bytesPerTask / nest.bytesPerElement);
  double inside = 1; // elements below the rows
  for (const Dim &dim : dims)
    inside *= dim.rows ? 1 : dim.extent;
  tasks_ = 1;
  rowsPerTask_ = 0;
  for (Dim &dim : dims)
    dim.block = dim.extent, dim.blocks = 1;
  bool rowsFirst = !dims.empty() && dims[0].rows;
  if (rowsFirst && nest.chunks) {
    rowsPerTask_ = nest.chunks->chunk;
  } else if (rowsFirst) {
    rowsPerTask_ = std::clamp<int64_t>(wanted / inside, 1, capacity);
    if (lanesOverRows() && rowsPerTask_ * inside < lanes_)
      rowsPerTask_ = std::min<int64_t>(capacity, std::max<int64_t>(1, lanes_ / inside));
  }
  for (const Dim &dim : ArrayRef(dims).drop_front(rowsFirst ? 1 : 0))
    if (dim.rows)
      inside *= dim.extent;
  double pieces = std::ceil(inside / wanted);
  auto cut = [&](size_t i) {
    if (dims[i].rows || pieces <= 1 || (nest.folds && tasksAtCapacity() >= enoughTasks))
      return;
    int64_t units = i == way.from ? (laneExtent + lanes_ - 1) / lanes_ : dims[i].extent;
    dims[i].block = blockOf(units, std::min<int64_t>(units, pieces));
    dims[i].blocks = (units + dims[i].block - 1) / dims[i].block;
    tasks_ *= dims[i].blocks;
    pieces = dims[i].block > 1 ? 1 : std::ceil(pieces / dims[i].blocks);
  };
  for (size_t i = rowsFirst ? 1 : 0; i < way.at; ++i)
    cut(i);
  if (way.from < dims.size() && !(rowsFirst && way.from == 0))
    cut(way.from);
}

FailureOr<NestTasks::Weight> NestTasks::emit(Emitter &emitter, Count task, bool keep) {
  Elements elements(emitter, nest.formulas, capacity);
  Task t{emitter, elements, dims, elements.scopes()};
  nest.prepare(elements);
  t.index.assign(shape.size(), constantIndex(0));
  placeTask(t, task);
  emitDims(t, 0, way.at, [&] {
    if (way.from == dims.size())
      emitBody(t);
    else
      lanesOverRows() ? emitRowLanes(t) : emitLanes(t);
  });
  if (elements.hasFailed())
    return failure();
  Weight weight{nest.penalty ? nest.penalty(elements) : 0, elements.foldsAgain(), elements.foldsAcrossLanes(),
                elements.termsAlongLanes()};
  if (elements.hasTooManyLanes())
    weight.cost = INFINITY;
  if (keep && nest.chosen)
    nest.chosen(elements);
  return weight;
}

// Computes the rows of a task, and its block of each dimension.
void NestTasks::placeTask(Task &t, Count task) {
  auto divide = [&](CountOp op, Count number, int64_t by) { return t.emitter.arithmetic(op, number, t.constant(by)); };
  bool both = rowsPerTask_ && tasks_ > 1;
  t.rowTask = both ? divide(CountOp::Div, task, tasks_) : task;
  Count rest = both ? divide(CountOp::Rem, task, tasks_) : task;
  t.blockOf.assign(dims.size(), {});
  int64_t below = tasks_;
  for (auto [dim, block] : llvm::zip(dims, t.blockOf)) {
    if (dim.blocks == 1)
      continue;
    below /= dim.blocks;
    block = divide(CountOp::Div, rest, below);
    rest = divide(CountOp::Rem, rest, below);
  }
}

// The loops over dims [i, end), in the order of memory.
void NestTasks::emitDims(Task &t, size_t i, size_t last, llvm::function_ref<void()> inside) {
  if (i == last)
    return inside();
  const Dim &dim = dims[i];
  auto placeOne = [&](Count number) {
    t.place(i, t.scopes.variable(number, {0, dim.extent - 1}));
    emitDims(t, i + 1, last, inside);
  };
  if (i == 0 && dim.rows && (nest.chunks || rowsPerTask_ == 1))
    return placeOne(t.rowTask);
  if (!dim.rows && dim.blocks > 1 && dim.block == 1)
    return placeOne(t.blockOf[i]);
  auto placeEach = [&](AffineExpr at) {
    t.place(i, at);
    emitDims(t, i + 1, last, inside);
  };
  for (Interval interval : intervalsOf(i)) {
    Part part = partOf(t, i, interval);
    if (i == 0 && dim.rows) {
      Count perTask = t.constant(rowsPerTask_);
      part.begin = t.mul(t.rowTask, perTask);
      part.end = t.endOf(part.begin, perTask, t.emitter.rows());
      part.trips = rowsPerTask_;
    } else if (dim.rows) {
      part.end = t.emitter.rows();
    }
    forEach(t, part, placeEach);
  }
}

/// The intervals of a dimension between the borders of windows.
SmallVector<Interval> NestTasks::intervalsOf(size_t i) const {
  const Dim &dim = dims[i];
  SmallVector<Interval> intervals{{0, dim.extent - 1}};
  bool isWhole = dim.physical >= 0 && !dim.rows && physical[dim.physical].kind == ir::PhysicalDim::Whole;
  if (!isWhole || nest.borders.empty())
    return intervals;
  for (int64_t border : nest.borders[physical[dim.physical].logical]) {
    intervals.back().high = border - 1;
    intervals.push_back({border, dim.extent - 1});
  }
  return intervals;
}

/// The loop over those units of an interval that belong to the task. Its bounds are constants if the number of units is
/// the same for all tasks, so that compilers can optimize it.
NestTasks::Part NestTasks::partOf(Task &t, size_t i, Interval interval) {
  const Dim &dim = dims[i];
  AffineExpr first = constantIndex(0);
  int64_t end = interval.high + 1, units = end - interval.low;
  if (dim.blocks == 1)
    return {first, interval, t.constant(interval.low), t.constant(end), units};
  if (dim.blocks * dim.block == units) { // the interval has all units
    first = t.scopes.variable(t.blockOf[i], {0, dim.blocks - 1}) * dim.block;
    return {first, {0, dim.block - 1}, t.constant(0), t.constant(dim.block), dim.block};
  }
  Count block = t.constant(dim.block), begin = t.mul(t.blockOf[i], block);
  Count partEnd = t.endOf(begin, block, t.constant(end));
  if (interval.low > 0)
    begin = t.emitter.arithmetic(CountOp::Max, begin, t.constant(interval.low));
  return {first, interval, begin, partEnd, std::min(dim.block, units)};
}

void NestTasks::forEach(Task &t, const Part &part, llvm::function_ref<void(AffineExpr)> inside) {
  t.scopes.loop(part.begin, part.end, 1, part.trips, {}, [&](Count number, ArrayRef<Element>) {
    inside(part.first + t.scopes.variable(number, part.range));
    return Scopes::Carried();
  });
}

void NestTasks::placeLanes(Task &t, AffineExpr flat) {
  int64_t stride = 1;
  for (size_t i = endOfLanes(); i-- > way.from;) {
    AffineExpr position = flat.floorDiv(stride);
    t.place(i, i == way.from ? position : position % dims[i].extent);
    stride *= dims[i].extent;
  }
}

// The body of the loop over lanes.
void NestTasks::emitColumns(Task &t) {
  emitDims(t, way.at, way.from, [&] { emitDims(t, endOfLanes(), dims.size(), [&] { emitBody(t); }); });
}

// A loop over whole groups of lanes, then the remaining lanes.
void NestTasks::emitLanes(Task &t) {
  const Dim &dim = dims[way.from];
  int64_t full = laneExtent / lanes_, rest = laneExtent % lanes_;
  Condition isLast;
  if (full > 0)
    forEach(t, partOf(t, way.from, {0, full - 1}), [&](AffineExpr group) {
      placeLanes(t, group * lanes_ + t.scopes.laneVariable());
      emitColumns(t);
    });
  if (rest > 0 && dim.blocks > 1)
    isLast = t.emitter.isEqual(t.blockOf[way.from], dim.blocks - 1);
  if (rest > 0)
    t.scopes.block(isLast, {}, [&] {
      placeLanes(t, t.scopes.laneVariable(rest) + full * lanes_);
      emitColumns(t);
      return Scopes::Carried();
    });
}

// Lanes over the rows and the dimensions below, flattened. The number of lanes is known at run time only.
void NestTasks::emitRowLanes(Task &t) {
  int64_t inside = laneExtent / dims[0].extent;
  Count perTask = t.constant(rowsPerTask_);
  Count firstRow = t.mul(t.rowTask, perTask);
  Count lastRow = t.endOf(firstRow, perTask, t.emitter.rows());
  Count begin = t.mul(firstRow, t.constant(inside)), end = t.mul(lastRow, t.constant(inside));
  int64_t trips = (rowsPerTask_ * inside + lanes_ - 1) / lanes_;
  t.scopes.loop(begin, end, lanes_, trips, {}, [&](Count number, ArrayRef<Element>) {
    AffineExpr first = t.scopes.variable(number, {0, laneExtent - 1});
    placeLanes(t, first + t.scopes.laneVariable(t.emitter.arithmetic(CountOp::Sub, end, number)));
    emitBody(t);
    return Scopes::Carried();
  });
}

// Everything is computed before anything is stored, so that a result may share the memory of an operand of the same
// shape.
void NestTasks::emitBody(Task &t) {
  SmallVector<AffineExpr> index(nest.space.getRank(), constantIndex(0));
  AffineExpr offset = constantIndex(0);
  for (auto [dim, size, place] : llvm::zip(physical, shape, t.index)) {
    index[dim.logical] = index[dim.logical] + (dim.kind == ir::PhysicalDim::Div ? place * dim.tile : place);
    offset = offset * size + place;
  }
  if (nest.body)
    return nest.body(t.emitter, t.elements, t.chunk, index);
  // The last tile may be padded; padding is zero.
  SmallVector<AffineExpr> inside;
  for (const ir::PhysicalDim &dim : physical)
    if (dim.kind == ir::PhysicalDim::Div && nest.space.getDimSize(dim.logical) % dim.tile != 0)
      inside.push_back(-index[dim.logical] + (nest.space.getDimSize(dim.logical) - 1));

  if (t.chunk)
    offset = t.chunk * nest.chunks->elements + offset;
  SmallVector<std::tuple<Memory, AffineExpr, Element>> stores;
  for (const LoopNest::Output &output : nest.outputs) {
    AffineExpr place = output.offset ? output.offset(t.elements, index) : offset;
    SmallVector<Element> values;
    for (auto [i, memory] : llvm::enumerate(output.memories)) {
      auto element = [&, i = i] {
        if (values.empty())
          values = output.elements(t.elements, t.chunk, index);
        return values[i];
      };
      Element zero = t.elements.zero(memory.type.getElementType());
      stores.push_back({memory, place, t.elements.guarded(inside, element, zero)});
    }
  }
  for (auto &[memory, place, element] : stores)
    t.elements.store(memory, place, element);
}

} // namespace sluice::loops
