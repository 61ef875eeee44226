// The order of a sum. The index space of the dimensions reduced is cut in two: the fewest last dimensions that have at
// least four elements per lane (`?` counts as many) are flattened, row-major; the others are walked in order outside of
// them. Element i of the flattened part goes to partial result i mod L, where L is the number of lanes, and the L
// partial results are combined as a binary tree, i with i + L/2, then L/4, and so on; those that got no element hold
// the identity, and may be left out. Nothing else enters: not layouts, not what is fused.
//
// Two ways lead there. Along lanes, where the fold does not depend on an enclosing lane variable: partial result i is
// lane i of one vector, which walks over the flattened elements. Across lanes, where it does (bias gradients: the
// channel is the lane): each of the L partial results is a vector of its own.
#include "backends/cpu/compiler/loops/Fold.h"

#include "backends/cpu/compiler/VectorAccess.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sluice::cpu {

using namespace mlir;

SmallVector<Value> Fold::emit() {
  if (Evaluator::Trial *trial = e.trial) {
    trial->folds.push_back({SmallVector<int64_t>(extents), SmallVector<Type>(initial.getTypes())});
    for (auto [position, extent] : llvm::enumerate(extents))
      index.push_back(e.trialVariable(position, extent));
    return step(index, initial);
  }
  Evaluator::OpFrame &frame = e.frames.back();
  unsigned number = frame.reductions++;
  bool partial = e.request && e.request->op == frame.op;
  if (auto split = e.splits.find(frame.op); split != e.splits.end() && !partial)
    return combineChunks(split->second);

  SmallVector<AffineExpr> identity = {e.constantIndex(-1), e.constantIndex(number)};
  LoopScope *target = tryOut(identity);
  Value key = frame.op->getResult(0);
  if (const LoopScope::Entry *known = e.lookup(target, key, identity))
    return known->results;
  Values results = e.inScope(target, [&] {
    across = e.laneScope() != nullptr;
    arrange();
    Values carried;
    partialResults = across ? std::min(e.lanes, innerExtent) : 1;
    for (int64_t i = 0; i < partialResults; ++i)
      llvm::append_range(carried, initial);
    Values partials = emitLoops(0, carried);
    return across ? foldPartials(partials) : foldLanes(partials);
  });
  unsigned guard = e.guards.empty() ? 0 : e.guards.back().id;
  target->found[key].push_back({key, identity, guard, results});
  if (partial)
    e.request->results = results;
  return results;
}

void Evaluator::noteFold(LoopScope *in, ArrayRef<AffineExpr> used) {
  llvm::DenseSet<unsigned> needed;
  for (AffineExpr expr : used)
    forEachVariable(expr, [&](unsigned number) { needed.insert(number); });
  for (auto [number, variable] : llvm::enumerate(variables)) {
    bool isLoop = variable.value && variable.scope->anchor && isa<scf::ForOp>(variable.scope->anchor);
    for (LoopScope *around = in; isLoop && around; around = around->parent)
      foldedAgain |= around == variable.scope && !needed.contains(number);
  }
}

// Constants may be used anywhere once they stand at the function's beginning.
static bool moveToEntry(Value value, Block *entry) {
  Operation *op = value.getDefiningOp();
  if (!op || !op->hasTrait<OpTrait::ConstantLike>())
    return false;
  if (op->getBlock() != entry)
    op->moveBefore(&entry->front());
  return true;
}

// Runs the step once into a block that is thrown away, to learn on which loops it depends.
LoopScope *Fold::tryOut(SmallVectorImpl<AffineExpr> &identity) {
  Evaluator::Trial trial;
  Region region;
  SmallVector<AffineExpr> trialIndex;
  for (auto [position, extent] : llvm::enumerate(extents))
    trialIndex.push_back(e.trialVariable(position, extent));
  {
    OpBuilder::InsertionGuard guard(e.builder());
    e.builder().setInsertionPointToStart(&region.emplaceBlock());
    e.trial = &trial;
    step(trialIndex, initial);
    e.trial = nullptr;
  }
  LoopScope *deepest = e.scopeOfAll(trial.used);
  if (e.request && e.request->op == e.frames.back().op)
    if (LoopScope *needed = e.scopeOf(e.request->chunk); needed->depth > deepest->depth)
      deepest = needed;
  if (LoopScope *needed = scopeOfCaptured(region); needed->depth > deepest->depth)
    deepest = needed;
  llvm::append_range(identity, trial.identity);
  e.noteFold(deepest, trial.used);
  return deepest;
}

// Values that the step uses without asking for them: earlier results in the same op's formula. Constants among them,
// which the formula made wherever it was asked, move to the function's beginning.
LoopScope *Fold::scopeOfCaptured(Region &trial) {
  LoopScope *deepest = &e.scopes.front();
  auto consider = [&](Value value) {
    if (trial.isAncestor(value.getParentRegion()))
      return;
    if (moveToEntry(value, e.scopes.front().block))
      return;
    LoopScope *needed = e.scopeOf(value);
    if (!needed)
      needed = e.scope;
    if (needed->depth > deepest->depth)
      deepest = needed;
  };
  for (Value value : initial)
    consider(value);
  trial.walk([&](Operation *op) {
    for (Value value : op->getOperands())
      consider(value);
  });
  return deepest;
}

SmallVector<Value> Fold::combineChunks(const SplitFold &split) {
  Evaluator::OpFrame &frame = e.frames.back();
  OpBuilder &b = e.builder();
  SmallVector<AffineExpr> place = frame.index;
  auto resultType = cast<RankedTensorType>(split.op->getResult(0).getType());
  for (Value value : initial)
    moveToEntry(value, e.scopes.front().block);

  LoopScope *target = e.scopeOfAll(place);
  SmallVector<AffineExpr> identity = {e.constantIndex(-2)};
  llvm::append_range(identity, place);
  if (const LoopScope::Entry *known = e.lookup(target, split.op->getResult(0), identity))
    return known->results;
  Values results = e.inScope(target, [&] {
    Value count = e.constantIndex64(split.maxChunks);
    if (split.overRows)
      count = b.create<arith::CeilDivSIOp>(e.loc(), e.stage.rows, e.constantIndex64(split.chunk));
    return e.loop(e.constantIndex64(0), count, 1, split.maxChunks, initial, [&](Value iv, ValueRange carried) {
      AffineExpr chunk = e.variable(iv, {0, split.maxChunks - 1});
      AffineExpr offset = chunk * split.elements + e.offsetOf(resultType, place);
      Values parts;
      for (auto [value, byteOffset] : llvm::zip(initial, split.byteOffsets)) {
        auto type = RankedTensorType::get({split.elements}, getElementTypeOrSelf(value.getType()));
        parts.push_back(e.load({split.buffer, byteOffset, type}, offset));
      }
      return combine(carried, parts);
    });
  });
  unsigned guard = e.guards.empty() ? 0 : e.guards.back().id;
  target->found[split.op->getResult(0)].push_back({split.op->getResult(0), identity, guard, results});
  return results;
}

// Decides which dimensions are flattened, by extents alone, and restricts the outermost to the chunk asked for.
void Fold::arrange() {
  OpBuilder &b = e.builder();
  index.assign(extents.size(), e.constantIndex(0));
  SmallVector<Dim> dims;
  for (auto [position, extent] : llvm::enumerate(extents)) {
    if (extent == 1)
      continue;
    Dim dim{unsigned(position), e.capacityOf(extent), nullptr, nullptr};
    if (extent == ir::ElementBuilder::kRows)
      dim.count = e.stage.rows;
    dims.push_back(dim);
  }
  int64_t fullInner = 1;
  size_t firstInner = dims.size();
  while (firstInner > 0 && fullInner < 4 * e.lanes) {
    const Dim &dim = dims[--firstInner];
    fullInner *= dim.extent;
    if (extents[dim.position] == ir::ElementBuilder::kRows)
      break;
  }
  if (e.request && e.request->op == e.frames.back().op) {
    const SplitFold &split = e.splits[e.request->op];
    Dim &first = dims.front();
    first.start = e.request->chunk * split.chunk;
    if (first.count || first.extent % split.chunk != 0) {
      Value total = first.count ? first.count : e.constantIndex64(first.extent);
      Value left = b.create<arith::SubIOp>(e.loc(), total, e.indexValue(first.start));
      first.count = b.create<arith::MinSIOp>(e.loc(), left, e.constantIndex64(split.chunk));
    }
    first.extent = split.chunk;
  }
  outer.assign(dims.begin(), dims.begin() + firstInner);
  inner.assign(dims.begin() + firstInner, dims.end());
  for (const Dim &dim : inner)
    innerExtent *= dim.extent;
}

// The run-time number of flattened elements; null where it is `innerExtent`.
Value Fold::innerCount() {
  if (inner.empty() || !inner.front().count)
    return nullptr;
  Value rest = e.constantIndex64(innerExtent / inner.front().extent);
  return e.builder().create<arith::MulIOp>(e.loc(), inner.front().count, rest);
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

SmallVector<Value> Fold::emitLoops(size_t depth, ValueRange carried) {
  if (depth == outer.size())
    return across ? acrossLanes(carried) : alongLanes(carried);
  const Dim &dim = outer[depth];
  Value count = dim.count ? dim.count : e.constantIndex64(dim.extent);
  return e.loop(e.constantIndex64(0), count, 1, dim.extent, carried, [&](Value iv, ValueRange inside) {
    AffineExpr place = e.variable(iv, {0, dim.extent - 1});
    index[dim.position] = dim.start ? dim.start + place : place;
    return emitLoops(depth + 1, inside);
  });
}

SmallVector<Value> Fold::stepAt(ValueRange carried) {
  const Evaluator::OpFrame &frame = e.frames.back();
  if (!e.request || e.request->op != frame.op)
    return step(index, carried);
  auto add = [&](AffineExpr expr, int64_t size) {
    if (size != 1)
      e.stepIndex.push_back(e.space.normalize(expr));
  };
  for (auto [expr, size] : llvm::zip(frame.index, cast<RankedTensorType>(frame.op->getResult(0).getType()).getShape()))
    add(expr, size);
  for (auto [expr, size] : llvm::zip(index, extents))
    add(expr, size);
  ++e.steps;
  Values next = step(index, carried);
  e.stepIndex.clear();
  return next;
}

// Lanes beyond the end keep what they had.
SmallVector<Value> Fold::keepTail(ValueRange next, ValueRange previous) {
  Values kept;
  for (auto [after, before] : llvm::zip(next, previous))
    kept.push_back(e.builder().create<arith::SelectOp>(e.loc(), e.laneScope()->tail, after, before));
  return kept;
}

SmallVector<Value> Fold::alongLanes(ValueRange carried) {
  OpBuilder &b = e.builder();
  int64_t lanes = e.lanes;
  if (Value count = innerCount()) {
    Value trips = b.create<arith::CeilDivSIOp>(e.loc(), count, e.constantIndex64(lanes));
    int64_t maxTrips = (innerExtent + lanes - 1) / lanes;
    return e.loop(e.constantIndex64(0), trips, 1, maxTrips, carried, [&](Value iv, ValueRange inside) {
      AffineExpr first = e.variable(iv, {0, maxTrips - 1}) * lanes;
      Value left = b.create<arith::SubIOp>(e.loc(), count, e.indexValue(first));
      setInner(first + e.laneVariable(left));
      return keepTail(stepAt(inside), inside);
    });
  }
  Values partials(carried);
  int64_t full = innerExtent / lanes, rest = innerExtent % lanes;
  if (full > 0)
    partials =
        e.loop(e.constantIndex64(0), e.constantIndex64(full), 1, full, partials, [&](Value iv, ValueRange inside) {
          AffineExpr first = e.variable(iv, {0, full - 1}) * lanes;
          setInner(first + e.laneVariable());
          return stepAt(inside);
        });
  if (rest > 0)
    partials = e.block(nullptr, partials, [&] {
      setInner(e.laneVariable(rest) + full * lanes);
      return keepTail(stepAt(partials), partials);
    });
  return partials;
}

SmallVector<Value> Fold::acrossLanes(ValueRange carried) {
  OpBuilder &b = e.builder();
  int64_t lanes = e.lanes, components = initial.size();
  auto stepPartial = [&](Values &partials, int64_t i) {
    Values next = stepAt(ValueRange(partials).slice(i * components, components));
    llvm::copy(next, partials.begin() + i * components);
  };
  Values partials(carried);
  Value count = innerCount();
  int64_t full = innerExtent / lanes;
  if (full > 0) {
    Value trips = count ? b.create<arith::DivUIOp>(e.loc(), count, e.constantIndex64(lanes)) : e.constantIndex64(full);
    partials = e.loop(e.constantIndex64(0), trips, 1, full, partials, [&](Value iv, ValueRange inside) {
      AffineExpr first = e.variable(iv, {0, full - 1}) * lanes;
      Values next(inside);
      for (int64_t i = 0; i < lanes; ++i) {
        setInner(first + i);
        stepPartial(next, i);
      }
      return next;
    });
  }
  if (count) {
    Value trips = b.create<arith::DivUIOp>(e.loc(), count, e.constantIndex64(lanes));
    Value rest = b.create<arith::RemUIOp>(e.loc(), count, e.constantIndex64(lanes));
    AffineExpr done = e.variable(trips, {0, full}) * lanes;
    return lastAcrossLanes(partials, rest, done);
  }
  for (int64_t i = 0; i < innerExtent % lanes; ++i) {
    setInner(e.constantIndex(full * lanes + i));
    stepPartial(partials, i);
  }
  return partials;
}

// A number of last elements known only at run time: their partial results go through memory.
SmallVector<Value> Fold::lastAcrossLanes(Values partials, Value rest, AffineExpr done) {
  OpBuilder &b = e.builder();
  int64_t components = initial.size();
  Values slots;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(e.scopes.front().block);
    Value number = b.create<arith::ConstantIntOp>(e.loc(), e.lanes, 64);
    for (Value value : initial)
      slots.push_back(
          b.create<LLVM::AllocaOp>(e.loc(), LLVM::LLVMPointerType::get(b.getContext()), value.getType(), number, 64));
  }
  auto slotOf = [&](int64_t component, Value i) {
    return elementAddress(b, e.loc(), initial[component].getType(), slots[component], i);
  };
  for (int64_t i = 0; i < partialResults * components; ++i)
    b.create<LLVM::StoreOp>(e.loc(), partials[i], slotOf(i % components, e.constantIndex64(i / components)));
  e.loop(e.constantIndex64(0), rest, 1, e.lanes / 2, {}, [&](Value iv, ValueRange) {
    setInner(done + e.variable(iv, {0, e.lanes - 1}));
    Values before;
    for (int64_t c = 0; c < components; ++c)
      before.push_back(b.create<LLVM::LoadOp>(e.loc(), initial[c].getType(), slotOf(c, iv)));
    for (auto [c, value] : llvm::enumerate(stepAt(before)))
      b.create<LLVM::StoreOp>(e.loc(), value, slotOf(c, iv));
    return Values();
  });
  for (int64_t i = 0; i < partialResults * components; ++i)
    partials[i] = b.create<LLVM::LoadOp>(e.loc(), initial[i % components].getType(),
                                         slotOf(i % components, e.constantIndex64(i / components)));
  return partials;
}

SmallVector<Value> Fold::foldPartials(Values partials) {
  size_t components = initial.size();
  for (size_t half = e.lanes / 2; half >= 1; half /= 2)
    for (size_t i = 0; i < half && i + half < size_t(partialResults); ++i) {
      ValueRange all(partials);
      Values sum = combine(all.slice(i * components, components), all.slice((i + half) * components, components));
      llvm::copy(sum, partials.begin() + i * components);
    }
  partials.resize(components);
  return partials;
}

SmallVector<Value> Fold::foldLanes(Values partials) {
  OpBuilder &b = e.builder();
  for (int64_t half = e.lanes / 2; half >= 1; half /= 2) {
    SmallVector<int64_t> moved;
    for (int64_t lane = 0; lane < e.lanes; ++lane)
      moved.push_back((lane + half) % e.lanes);
    Values shifted;
    for (Value partial : partials)
      shifted.push_back(b.create<vector::ShuffleOp>(e.loc(), partial, partial, moved));
    partials = combine(partials, shifted);
  }
  for (Value &partial : partials)
    partial = e.splat(b.create<vector::ExtractOp>(e.loc(), partial, ArrayRef<int64_t>{0}));
  return partials;
}

} // namespace sluice::cpu
