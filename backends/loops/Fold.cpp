#include "backends/loops/Fold.h"

namespace sluice::loops {

using namespace mlir;

/// The number of sums that chunks are distributed over.
static constexpr int64_t kChunkSums = 4;
using ir::ElementBuilder;

int64_t Fold::capacityOf(int64_t extent) const { return extent == ElementBuilder::kRows ? elements.capacity : extent; }

AffineExpr Fold::constantIndex(int64_t value) { return getAffineConstantExpr(value, emitter.space().getContext()); }

// Whether `Elements::partial` requests a chunk of this fold.
bool Fold::isPartial() const { return elements.request && elements.request->op == frame.formula.op; }

SmallVector<Element> Fold::emit() {
  for (ValueNumber number : reduction.initial)
    initial.push_back(frame.values[number].element);
  if (auto split = elements.splits.find(frame.formula.op); split != elements.splits.end() && !isPartial())
    return combineChunks(split->second);

  SmallVector<AffineExpr> used;
  for (auto [position, extent] : llvm::enumerate(reduction.extents))
    frame.dims[reduction.firstDim + position] = scopes.placeholder(position, capacityOf(extent));
  collectUsed(reduction.step, used);
  home_ = scopeOf(used);
  elements.foldedAgain |= scopes.repeats(home_, used);
  SmallVector<AffineExpr> identity = elements.normalize(used);
  if (const Scope::Entry *known = elements.lookup(home_, &reduction, identity))
    return known->elements;
  Values results = scopes.in(home_, [&] { return emitAll(); });
  elements.remember(home_, &reduction, identity, results, home_);
  if (isPartial())
    elements.request->results = results;
  return results;
}

// The indices that a step depends on. Two folds of one op with equal indices are the same fold.
void Fold::collectUsed(const Steps &steps, SmallVectorImpl<AffineExpr> &used) {
  for (const Step &step : steps.steps) {
    if (auto *read = std::get_if<Read>(&step.what))
      llvm::append_range(used, Elements::place(frame, read->index));
    if (auto *data = std::get_if<DataIndex>(&step.what)) {
      llvm::append_range(used, Elements::place(frame, data->index));
      frame.dims[data->dim] = scopes.placeholder(data->dim, data->size);
    }
    if (auto *index = std::get_if<IndexValue>(&step.what))
      used.push_back(Elements::place(frame, index->index));
    if (auto *guarded = std::get_if<Guarded>(&step.what)) {
      llvm::append_range(used, Elements::place(frame, guarded->nonNegative));
      collectUsed(guarded->then, used);
    }
    if (auto *inside = std::get_if<Reduction>(&step.what)) {
      for (auto [position, extent] : llvm::enumerate(inside->extents))
        frame.dims[inside->firstDim + position] = scopes.placeholder(position, capacityOf(extent));
      collectUsed(inside->step, used);
    }
  }
}

// The outermost scope that has all values that a step uses.
Scope *Fold::scopeOf(ArrayRef<AffineExpr> used) {
  Scope *deepest = scopes.of(used, elements.guardScope());
  if (isPartial())
    deepest = scopes.of(elements.request->chunk, deepest);
  for (ValueNumber number : reduction.captured)
    if (Scope *needed = frame.values[number].home; needed->depth > deepest->depth)
      deepest = needed;
  return deepest;
}

// After the last chunk, elements are the identity.
SmallVector<Element> Fold::loadChunk(const SplitFold &split, AffineExpr chunk, AffineExpr last, AffineExpr offset) {
  Values parts;
  for (auto [type, byteOffset, identity] : llvm::zip_equal(reduction.types, split.byteOffsets, initial)) {
    Memory memory{split.buffer, byteOffset, RankedTensorType::get({split.elements}, type)};
    auto load = [&] { return elements.load(memory, chunk * split.elements + offset); };
    parts.push_back(elements.guarded(last - chunk, load, identity));
  }
  return parts;
}

SmallVector<Element> Fold::combineChunks(const SplitFold &split) {
  auto resultType = cast<RankedTensorType>(split.op->getResult(0).getType());
  ArrayRef<AffineExpr> place = ArrayRef(frame.dims).take_front(resultType.getRank());
  home_ = scopes.of(place, elements.guardScope());
  if (const Scope::Entry *known = elements.lookup(home_, split.op, place))
    return known->elements;
  AffineExpr offset = elements.offsetOf(resultType, place);
  Values results = scopes.in(home_, [&] {
    Count count = emitter.constant(split.maxChunks);
    if (split.overRows)
      count = emitter.arithmetic(CountOp::CeilDiv, emitter.rows(), emitter.constant(split.chunk));
    if (split.overRows && split.parts > 1)
      count = emitter.arithmetic(CountOp::Mul, count, emitter.constant(split.parts));
    if (emitter.lanesOfThread() > 0 && !scopes.lanes().variable)
      return combineAlongLanes(split, count, offset);
    AffineExpr last = scopes.variable(count, {split.overRows ? 0 : split.maxChunks, split.maxChunks}) - 1;
    Count trips = emitter.arithmetic(CountOp::CeilDiv, count, emitter.constant(kChunkSums));
    int64_t mostTrips = llvm::divideCeil(split.maxChunks, kChunkSums);
    Values carried;
    for (int64_t i = 0; i < kChunkSums; ++i)
      llvm::append_range(carried, initial);
    carried = scopes.loop(emitter.constant(0), trips, 1, mostTrips, carried, [&](Count number, ValueRange sums) {
      AffineExpr first = scopes.variable(number, {0, mostTrips - 1}) * kChunkSums;
      Values next;
      for (int64_t i = 0; i < kChunkSums; ++i)
        llvm::append_range(
            next, combine(sums.slice(i * initial.size(), initial.size()), loadChunk(split, first + i, last, offset)));
      return next;
    });
    return foldPartials(carried, kChunkSums);
  });
  elements.remember(home_, split.op, place, results, home_);
  return results;
}

/// Each lane combines some of the chunks.
Fold::Values Fold::combineAlongLanes(const SplitFold &split, Count count, AffineExpr offset) {
  int64_t lanes = emitter.lanes(), mostTrips = llvm::divideCeil(split.maxChunks, lanes);
  elements.foldedAlong = std::max(elements.foldedAlong, split.maxChunks);
  Count trips = emitter.arithmetic(CountOp::CeilDiv, count, emitter.constant(lanes));
  Values sums =
      scopes.loop(emitter.constant(0), trips, 1, mostTrips, Values(initial), [&](Count number, ValueRange before) {
        AffineExpr first = scopes.variable(number, {0, mostTrips - 1}) * lanes;
        Count left = emitter.arithmetic(CountOp::Sub, count, emitter.count(first));
        AffineExpr chunk = first + scopes.laneVariable(left);
        Values loaded;
        for (auto [type, byteOffset] : llvm::zip_equal(reduction.types, split.byteOffsets))
          loaded.push_back(elements.load({split.buffer, byteOffset, RankedTensorType::get({split.elements}, type)},
                                         chunk * split.elements + offset));
        return keepTail(combine(before, loaded), before);
      });
  return foldLanes(sums);
}

Fold::Values Fold::emitAll() {
  across = bool(scopes.lanes().variable);
  arrange();
  noteLanes();
  partialResults = across ? std::min(emitter.partials(), innerExtent) : 1;
  Values carried;
  for (int64_t i = 0; i < partialResults; ++i)
    llvm::append_range(carried, initial);
  Values partials;
  if (isInMemory()) {
    writePartials(carried);
    emitLoops(0, {});
    partials = readPartials();
  } else {
    partials = emitLoops(0, carried);
  }
  return across ? foldPartials(partials, emitter.partials()) : foldLanes(partials);
}

// Whether partial results are in memory during all loops.
bool Fold::isInMemory() const { return across && emitter.lanes() > emitter.partials() && emitter.lanesOfThread() == 0; }

// Records properties by which the client chooses between mappings to lanes.
void Fold::noteLanes() {
  int64_t terms = 1, here = innerExtent;
  for (int64_t extent : reduction.extents)
    terms *= capacityOf(extent);
  for (const Dim &dim : outer)
    here *= dim.extent;
  // With more lanes than partial results, partial results are in memory. This does not pay for a sum of few terms,
  // which otherwise stays in registers, such as that of a window of 3 x 3.
  int64_t few = std::max<int64_t>(emitter.partials(), 16);
  elements.needsFewerLanes |=
      emitter.lanesOfThread() == 0 && (!across || terms <= few) && emitter.lanes() > emitter.partials();
  elements.foldedAcross |= across;
  if (!across)
    elements.foldedAlong = std::max(elements.foldedAlong, here);
}

// The variable of a loop that may have no trips at run time. Its range has at least two values. A variable with one
// value would be replaced by a constant, and the step's reads would be hoisted before the loop.
AffineExpr Fold::numberOf(Count number, int64_t mostTrips) {
  return scopes.variable(number, {0, std::max<int64_t>(1, mostTrips - 1)});
}

// Chooses the flattened dimensions, by extents alone, and restricts the outermost to the requested chunk.
void Fold::arrange() {
  ArrayRef<int64_t> extents = reduction.extents;
  index.assign(extents.size(), constantIndex(0));
  SmallVector<Dim> dims;
  for (auto [position, extent] : llvm::enumerate(extents)) {
    if (extent == 1)
      continue;
    Dim dim{unsigned(position), capacityOf(extent), {}, nullptr};
    if (extent == ElementBuilder::kRows)
      dim.count = emitter.rows();
    dims.push_back(dim);
  }
  int64_t fullInner = 1;
  size_t firstInner = dims.size();
  int64_t enough = 4 * (across ? emitter.partials() : emitter.lanes());
  while (firstInner > 0 && fullInner < enough) {
    const Dim &dim = dims[--firstInner];
    fullInner *= dim.extent;
    if (extents[dim.position] == ElementBuilder::kRows)
      break;
  }
  if (isPartial())
    cutToChunk(dims);
  outer.assign(dims.begin(), dims.begin() + firstInner);
  inner.assign(dims.begin() + firstInner, dims.end());
  for (const Dim &dim : inner)
    innerExtent *= dim.extent;
}

void Fold::cutToChunk(MutableArrayRef<Dim> all) {
  const SplitFold &split = elements.splits[frame.formula.op];
  Dim &first = all.front();
  int64_t chunk = split.chunk;
  if (split.parts > 1) {
    Dim &below = all[1];
    below.extent /= split.parts;
    below.start = elements.request->chunk % split.parts * below.extent;
    first = {first.position, 1, {}, elements.request->chunk.floorDiv(split.parts)};
    return;
  }
  first.start = elements.request->chunk * chunk;
  if (first.count || first.extent % chunk != 0) {
    Count total = first.count ? first.count : emitter.constant(first.extent);
    Count left = emitter.arithmetic(CountOp::Sub, total, emitter.count(first.start));
    first.count = emitter.arithmetic(CountOp::Min, left, emitter.constant(chunk));
  }
  first.extent = chunk;
}

// The run-time number of flattened elements; null if it equals `innerExtent`.
Count Fold::innerCount() {
  if (inner.empty() || !inner.front().count)
    return {};
  Count rest = emitter.constant(innerExtent / inner.front().extent);
  return emitter.arithmetic(CountOp::Mul, inner.front().count, rest);
}

void Fold::setInner(AffineExpr position) {
  int64_t stride = 1;
  for (const Dim &dim : llvm::reverse(inner)) {
    AffineExpr place = position.floorDiv(stride);
    if (&dim != &inner.front())
      place = place % dim.extent;
    index[dim.position] = dim.start ? dim.start + place : place;
    stride *= dim.extent;
  }
}

Fold::Values Fold::emitLoops(size_t depth, ValueRange carried) {
  if (depth == outer.size())
    return across ? acrossLanes(carried) : alongLanes(carried);
  const Dim &dim = outer[depth];
  Count count = dim.count ? dim.count : emitter.constant(dim.extent);
  return scopes.loop(emitter.constant(0), count, 1, dim.extent, carried, [&](Count number, ValueRange inside) {
    AffineExpr place = scopes.variable(number, {0, dim.extent - 1});
    index[dim.position] = dim.start ? dim.start + place : place;
    return emitLoops(depth + 1, inside);
  });
}

Fold::Values Fold::step(ValueRange carried) {
  llvm::copy(index, frame.dims.begin() + reduction.firstDim);
  elements.setValues(frame, reduction.carried, carried);
  return elements.follow(frame, reduction.step);
}

Fold::Values Fold::combine(ValueRange a, ValueRange b) {
  Values halves(a);
  llvm::append_range(halves, b);
  elements.setValues(frame, reduction.halves, halves);
  return elements.follow(frame, reduction.combine);
}

Fold::Values Fold::stepAt(ValueRange carried) {
  if (!isPartial())
    return step(carried);
  auto add = [&](AffineExpr expr, int64_t size) {
    if (size != 1)
      elements.stepIndex.push_back(emitter.space().normalize(expr));
  };
  auto type = cast<RankedTensorType>(frame.formula.op->getResult(0).getType());
  for (auto [expr, size] : llvm::zip(frame.dims, type.getShape()))
    add(expr, size);
  for (auto [expr, size] : llvm::zip(index, reduction.extents))
    add(expr, size);
  ++elements.steps;
  Values next = step(carried);
  elements.stepIndex.clear();
  return next;
}

// Inactive lanes keep their values.
Fold::Values Fold::keepTail(ValueRange next, ValueRange previous) {
  Values kept;
  for (auto [after, before] : llvm::zip(next, previous))
    kept.push_back(emitter.select(scopes.lanes().exists, after, before));
  return kept;
}

Fold::Values Fold::alongLanes(ValueRange carried) {
  int64_t lanes = emitter.lanes();
  if (Count count = innerCount()) {
    Count trips = emitter.arithmetic(CountOp::CeilDiv, count, emitter.constant(lanes));
    int64_t maxTrips = (innerExtent + lanes - 1) / lanes;
    return scopes.loop(emitter.constant(0), trips, 1, maxTrips, carried, [&](Count number, ValueRange inside) {
      AffineExpr first = scopes.variable(number, {0, maxTrips - 1}) * lanes;
      Count left = emitter.arithmetic(CountOp::Sub, count, emitter.count(first));
      setInner(first + scopes.laneVariable(left));
      return keepTail(stepAt(inside), inside);
    });
  }
  Values partials(carried);
  int64_t full = innerExtent / lanes, rest = innerExtent % lanes;
  if (full > 0)
    partials = scopes.loop(emitter.constant(0), emitter.constant(full), 1, full, partials,
                           [&](Count number, ValueRange inside) {
                             AffineExpr first = scopes.variable(number, {0, full - 1}) * lanes;
                             setInner(first + scopes.laneVariable());
                             return stepAt(inside);
                           });
  if (rest > 0)
    partials = scopes.block({}, partials, [&] {
      setInner(scopes.laneVariable(rest) + full * lanes);
      return keepTail(stepAt(partials), partials);
    });
  return partials;
}

Fold::Values Fold::acrossLanes(ValueRange carried) {
  Count count = innerCount();
  if (isInMemory()) {
    addInMemory(constantIndex(0), count ? count : emitter.constant(innerExtent), innerExtent);
    return {};
  }
  int64_t lanes = emitter.partials(), components = initial.size();
  auto stepPartial = [&](Values &partials, int64_t i) {
    Values next = stepAt(ValueRange(partials).slice(i * components, components));
    llvm::copy(next, partials.begin() + i * components);
  };
  Values partials(carried);
  int64_t full = innerExtent / lanes;
  if (full > 0) {
    Count trips = count ? emitter.arithmetic(CountOp::Div, count, emitter.constant(lanes)) : emitter.constant(full);
    partials = scopes.loop(emitter.constant(0), trips, 1, full, partials, [&](Count number, ValueRange inside) {
      AffineExpr first = (count ? numberOf(number, full) : scopes.variable(number, {0, full - 1})) * lanes;
      Values next(inside);
      for (int64_t i = 0; i < lanes; ++i) {
        setInner(first + i);
        stepPartial(next, i);
      }
      return next;
    });
  }
  if (count) {
    Count trips = emitter.arithmetic(CountOp::Div, count, emitter.constant(lanes));
    Count rest = emitter.arithmetic(CountOp::Rem, count, emitter.constant(lanes));
    writePartials(partials);
    addInMemory(scopes.variable(trips, {0, full}) * lanes, rest, lanes - 1);
    return readPartials();
  }
  for (int64_t i = 0; i < innerExtent % lanes; ++i) {
    setInner(constantIndex(full * lanes + i));
    stepPartial(partials, i);
  }
  return partials;
}

void Fold::writePartials(ValueRange partials) {
  int64_t components = initial.size();
  arrays.clear();
  for (Element element : initial)
    arrays.push_back(emitter.makeArray(element, emitter.partials()));
  for (auto [i, partial] : llvm::enumerate(partials))
    emitter.write(arrays[i % components], emitter.constant(i / components), partial);
}

Fold::Values Fold::readPartials() {
  int64_t components = initial.size();
  Values partials;
  for (int64_t i = 0; i < partialResults * components; ++i)
    partials.push_back(emitter.read(arrays[i % components], emitter.constant(i / components)));
  return partials;
}

// Adds `count` elements from `first` on to the partial results in memory, in order. `first` is a multiple of their
// number.
void Fold::addInMemory(AffineExpr first, Count count, int64_t mostTrips) {
  int64_t most = emitter.partials();
  scopes.loop(emitter.constant(0), count, 1, mostTrips, {}, [&](Count number, ValueRange) {
    setInner(first + numberOf(number, mostTrips));
    Count place = mostTrips <= most ? number : emitter.arithmetic(CountOp::Rem, number, emitter.constant(most));
    Values before;
    for (LaneArray array : arrays)
      before.push_back(emitter.read(array, place));
    for (auto [array, element] : llvm::zip(arrays, stepAt(before)))
      emitter.write(array, place, element);
    return Values();
  });
}

// A binary tree over a power of two; missing partial results hold the identity.
Fold::Values Fold::foldPartials(Values partials, int64_t leaves) {
  size_t components = initial.size(), present = partials.size() / components;
  for (size_t half = leaves / 2; half >= 1; half /= 2)
    for (size_t i = 0; i < half && i + half < present; ++i) {
      ValueRange all(partials);
      Values sum = combine(all.slice(i * components, components), all.slice((i + half) * components, components));
      llvm::copy(sum, partials.begin() + i * components);
    }
  partials.resize(components);
  return partials;
}

Fold::Values Fold::foldLanes(Values partials) {
  SmallVector<int64_t> halves;
  int64_t ofThread = std::max<int64_t>(emitter.lanesOfThread(), 1);
  for (int64_t half = ofThread / 2; half >= 1; half /= 2)
    halves.push_back(half);
  for (int64_t half = emitter.lanes() / 2; half >= ofThread; half /= 2)
    halves.push_back(half);
  for (int64_t half : halves) {
    Values shifted;
    for (Element partial : partials)
      shifted.push_back(emitter.rotate(partial, half));
    partials = combine(partials, shifted);
  }
  for (Element &partial : partials)
    partial = emitter.spreadFirst(partial);
  return partials;
}

} // namespace sluice::loops
