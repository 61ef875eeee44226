#include "backends/cpu/compiler/loops/Evaluator.h"

#include "backends/cpu/compiler/VectorAccess.h"
#include "backends/cpu/compiler/loops/ConstantData.h"
#include "backends/cpu/compiler/loops/Fold.h"
#include "ir/Layout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sluice::cpu {

using namespace mlir;
using ir::getLaneElement;

Evaluator::Evaluator(OpBuilder &builder, Location loc, StageFunction &stage, int64_t lanes, int64_t capacity,
                     Surroundings surroundings)
    : ElementBuilder(builder, loc), stage(stage), lanes(lanes), capacity(capacity), space(builder.getContext()) {
  Block *block = builder.getInsertionBlock(), *entry = &stage.func.getBody().front();
  if (surroundings == Surroundings::Ignored || block == entry) {
    scope = push(nullptr, block);
    return;
  }
  assert(block->getParentOp()->getBlock() == entry && "one loop, that over tasks, may be around the insertion point");
  scope = push(nullptr, entry);
  scope = push(block->getParentOp(), block);
}

// Scopes.

LoopScope *Evaluator::push(Operation *anchor, Block *block) {
  LoopScope *parent = scopes.empty() ? nullptr : scope;
  LoopScope &added = scopes.emplace_back();
  added.parent = parent;
  added.anchor = anchor;
  added.block = block;
  added.depth = parent ? parent->depth + 1 : 0;
  scopeOfBlock[block] = &added;
  return &added;
}

LoopScope *Evaluator::scopeOf(AffineExpr expr) {
  LoopScope *deepest = &scopes.front();
  forEachVariable(expr, [&](unsigned number) {
    if (number < variables.size() && variables[number].scope && variables[number].scope->depth > deepest->depth)
      deepest = variables[number].scope;
  });
  return deepest;
}

LoopScope *Evaluator::scopeOf(Value value) { return scopeOfBlock.lookup(value.getParentBlock()); }

LoopScope *Evaluator::scopeOfAll(ArrayRef<AffineExpr> exprs) {
  LoopScope *deepest = guardScope();
  for (AffineExpr expr : exprs)
    if (LoopScope *needed = scopeOf(expr); needed->depth > deepest->depth)
      deepest = needed;
  return deepest;
}

// What is loaded under a guard may not leave the loops that its conditions speak of.
LoopScope *Evaluator::guardScope() {
  LoopScope *deepest = &scopes.front();
  for (const Guard &guard : guards)
    for (AffineExpr expr : guard.nonNegative)
      if (LoopScope *needed = scopeOf(expr); needed->depth > deepest->depth)
        deepest = needed;
  return deepest;
}

LoopScope *Evaluator::laneScope() const {
  LoopScope *found = scope;
  while (found && !found->lane)
    found = found->parent;
  return found;
}

bool Evaluator::isActive(unsigned guard) const {
  return guard == 0 || llvm::any_of(guards, [&](const Guard &active) { return active.id == guard; });
}

const LoopScope::Entry *Evaluator::lookup(LoopScope *in, Value value, ArrayRef<AffineExpr> index) {
  auto entries = in->found.find(value);
  if (entries == in->found.end())
    return nullptr;
  for (const LoopScope::Entry &entry : entries->second)
    if (ArrayRef(entry.index) == index && isActive(entry.guard))
      return &entry;
  return nullptr;
}

// Loops.

AffineExpr Evaluator::variable(Value value, Interval range) {
  variables.push_back({scope, value});
  return space.addVariable(range);
}

AffineExpr Evaluator::laneVariable(Value count) {
  variables.push_back({scope, nullptr});
  scope->lane = space.addVariable({0, lanes - 1}, /*keep=*/true);
  if (!count)
    return scope->lane;
  Value most = constantIndex64(lanes);
  Value clamped = builder_->create<arith::MinSIOp>(loc_, count, most);
  Type i32 = builder_->getI32Type();
  Value limit = splat(builder_->create<arith::TruncIOp>(loc_, i32, clamped));
  LinearIndex number;
  number.add(scope->lane, 1);
  scope->tail = builder_->create<arith::CmpIOp>(loc_, arith::CmpIPredicate::slt, laneValue(number, i32), limit);
  return scope->lane;
}

// Lanes beyond the count do not exist for the analysis of indices either: whatever they address is masked.
AffineExpr Evaluator::laneVariable(int64_t count) {
  variables.push_back({scope, nullptr});
  scope->lane = space.addVariable({0, std::min(count, lanes) - 1}, /*keep=*/true);
  if (count >= lanes)
    return scope->lane;
  SmallVector<bool> bits(lanes, false);
  std::fill_n(bits.begin(), count, true);
  scope->tail = builder_->create<arith::ConstantOp>(
      loc_, DenseElementsAttr::get(vectorOf(builder_->getI1Type()), ArrayRef<bool>(bits)));
  return scope->lane;
}

Evaluator::Carried Evaluator::loop(Value begin, Value end, int64_t step, int64_t trips, ValueRange carried, Body body) {
  auto loop = builder_->create<scf::ForOp>(loc_, begin, end, constantIndex64(step), carried);
  loop->setAttr(kTripsAttr, builder_->getI64IntegerAttr(trips));
  OpBuilder::InsertionGuard guard(*builder_);
  LoopScope *outer = std::exchange(scope, push(loop, loop.getBody()));
  if (carried.empty())
    builder_->setInsertionPoint(loop.getBody()->getTerminator());
  else
    builder_->setInsertionPointToEnd(loop.getBody());
  Carried next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!carried.empty())
    builder_->create<scf::YieldOp>(loc_, next);
  scope = outer;
  return Carried(loop.getResults());
}

Evaluator::Carried Evaluator::block(Value condition, ValueRange carried, llvm::function_ref<Carried()> body) {
  if (!condition)
    condition = builder_->create<arith::ConstantIntOp>(loc_, 1, 1);
  auto branch = builder_->create<scf::IfOp>(loc_, carried.getTypes(), condition, /*withElseRegion=*/!carried.empty());
  OpBuilder::InsertionGuard guard(*builder_);
  LoopScope *outer = std::exchange(scope, push(branch, branch.thenBlock()));
  if (carried.empty())
    builder_->setInsertionPoint(branch.thenBlock()->getTerminator());
  else
    builder_->setInsertionPointToEnd(branch.thenBlock());
  Carried next = body();
  if (!carried.empty()) {
    builder_->create<scf::YieldOp>(loc_, next);
    builder_->setInsertionPointToEnd(branch.elseBlock());
    builder_->create<scf::YieldOp>(loc_, carried);
  }
  scope = outer;
  return Carried(branch.getResults());
}

// Elements.

void Evaluator::seed(Value value, ArrayRef<AffineExpr> index, Value element) {
  SmallVector<AffineExpr> normal;
  for (AffineExpr expr : index)
    normal.push_back(space.normalize(expr));
  scope->found[value].push_back({value, normal, 0, {element}});
}

Value Evaluator::dummy(Type element) {
  return builder_->create<arith::ConstantOp>(loc_, builder_->getZeroAttr(vectorOf(getLaneElement(element))));
}

Value Evaluator::fail(Operation *op, const Twine &message, Type type) {
  if (!failed)
    op->emitOpError(message);
  failed = true;
  return dummy(getElementTypeOrSelf(type));
}

Value Evaluator::element(Value value, ArrayRef<AffineExpr> index) {
  if (failed)
    return dummy(getElementTypeOrSelf(value.getType()));
  SmallVector<AffineExpr> normal;
  for (AffineExpr expr : index)
    normal.push_back(space.normalize(expr));
  // A seeded value lies where its loop put it, which may be deeper than its indices need.
  for (LoopScope *in = scope; in; in = in->parent)
    if (const LoopScope::Entry *entry = lookup(in, value, normal))
      return entry->results[0];
  return inScope(scopeOfAll(normal), [&] {
    Value result = compute(value, normal);
    unsigned guard = guards.empty() ? 0 : guards.back().id;
    scope->found[value].push_back({value, normal, guard, {result}});
    storeIfAsked(value, normal, result);
    return result;
  });
}

Value Evaluator::compute(Value value, ArrayRef<AffineExpr> index) {
  if (auto memory = memories.find(value); memory != memories.end())
    return load(memory->second, offsetOf(memory->second.type, index));
  Operation *op = value.getDefiningOp();
  assert(op && "block arguments are bound to buffers");
  if (auto elementwise = dyn_cast<ir::ElementwiseOp>(op)) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(element(operand, index));
    return elementwise.buildBody(*builder_, loc_, operands);
  }
  if (auto constant = dyn_cast<ir::ConstantOp>(op))
    return computeConstant(constant, index);
  auto definition = dyn_cast<ir::ElementOp>(op);
  if (!definition)
    return fail(op, "has no element-wise definition, so the CPU's loop generator cannot place it in a kernel",
                value.getType());
  frames.push_back({op, SmallVector<AffineExpr>(index)});
  Value result = definition.buildElement(*this, cast<OpResult>(value).getResultNumber(), index);
  frames.pop_back();
  return result;
}

Value Evaluator::computeConstant(ir::ConstantOp op, ArrayRef<AffineExpr> index) {
  auto elements = cast<DenseElementsAttr>(op.getValue());
  Type element = getLaneElement(elements.getElementType());
  if (elements.isSplat()) {
    Attribute number = elements.getSplatValue<Attribute>();
    if (element.isInteger())
      number = IntegerAttr::get(element, cast<IntegerAttr>(number).getValue());
    return builder_->create<arith::ConstantOp>(loc_, DenseElementsAttr::get(vectorOf(element), number));
  }
  Value base = addressOfConstant(*builder_, loc_, stage.func->getParentOfType<ModuleOp>(), elements);
  auto type = RankedTensorType::get(elements.getType().getShape(), elements.getElementType());
  return loadAt(element, base, offsetOf(type, index));
}

Value Evaluator::operand(unsigned number, ArrayRef<AffineExpr> index) {
  Value value = frames.back().op->getOperand(number);
  if (!trial)
    return element(value, index);
  trial->identity.push_back(constantIndex(number));
  for (AffineExpr expr : index) {
    trial->used.push_back(expr);
    trial->identity.push_back(space.normalize(expr));
  }
  return dummy(getElementTypeOrSelf(value.getType()));
}

Value Evaluator::constant(double value, Type element) {
  Type lane = getLaneElement(element);
  Attribute number;
  if (isa<FloatType>(lane))
    number = FloatAttr::get(lane, value);
  else
    number = IntegerAttr::get(
        lane, APInt(lane.getIntOrFloatBitWidth(), lane.isInteger(1) ? value != 0 : uint64_t(int64_t(value)), true));
  return builder_->create<arith::ConstantOp>(loc_, DenseElementsAttr::get(vectorOf(lane), number));
}

Value Evaluator::rows(Type element) {
  return inScope(&scopes.front(), [&] {
    if (isa<FloatType>(element))
      return splat(builder_->create<arith::SIToFPOp>(loc_, element, stage.rows));
    Value rows = stage.rows;
    if (element.getIntOrFloatBitWidth() < 64)
      rows = builder_->create<arith::TruncIOp>(loc_, getLaneElement(element), rows);
    return splat(rows);
  });
}

void Evaluator::storeIfAsked(Value value, ArrayRef<AffineExpr> index, Value element) {
  auto asked = onTheWay.find(value);
  if (asked == onTheWay.end() || stepIndex.empty() || !guards.empty())
    return;
  SmallVector<AffineExpr> left(stepIndex);
  for (auto [expr, size] : llvm::zip(index, cast<RankedTensorType>(value.getType()).getShape())) {
    if (size == 1)
      continue;
    auto found = llvm::find(left, expr);
    if (found == left.end())
      return;
    left.erase(found);
  }
  AffineExpr offset = offsetOf(asked->second.memory.type, index);
  if (!left.empty() || (laneScope() && !isContiguous(offset)))
    return;
  store(asked->second.memory, offset, element);
  ++asked->second.stores;
}

// Guards.

Value Evaluator::guarded(ArrayRef<AffineExpr> nonNegative, const std::function<Value()> &then, Value otherwise) {
  Guard guard{nextGuard++, {}};
  for (AffineExpr expr : nonNegative) {
    if (trial) { // which sees all that may be asked for: flattened, the ranges of its variables may tell less
      trial->used.push_back(expr);
      trial->identity.push_back(space.normalize(expr));
      continue;
    }
    Interval range = space.range(expr);
    if (range.high < 0)
      return otherwise;
    if (range.low < 0)
      guard.nonNegative.push_back(space.normalize(expr));
  }
  if (trial || guard.nonNegative.empty())
    return then();
  guards.push_back(guard);
  Value inside = then();
  guards.pop_back();
  Mask mask = maskOf(guard.nonNegative);
  Value held = mask.lanes ? toLanes(mask, false) : mask.uniform;
  return builder_->create<arith::SelectOp>(loc_, held, inside, otherwise);
}

Value Evaluator::condition(AffineExpr nonNegative) {
  LoopScope *target = scopeOf(nonNegative);
  if (Value known = target->conditions.lookup(nonNegative))
    return known;
  return inScope(target, [&]() -> Value {
    LinearIndex index = space.analyze(nonNegative);
    Value value = usesLane(nonNegative) ? laneValue(index, builder_->getI32Type()) : uniformValue(index);
    Value zero = builder_->create<arith::ConstantOp>(loc_, builder_->getZeroAttr(value.getType()));
    Value holds = builder_->create<arith::CmpIOp>(loc_, arith::CmpIPredicate::sge, value, zero);
    scope->conditions[nonNegative] = holds;
    return holds;
  });
}

Evaluator::Mask Evaluator::maskOf(ArrayRef<AffineExpr> nonNegative) {
  Mask mask;
  for (AffineExpr expr : nonNegative) {
    Value holds = condition(expr);
    Value &all = isa<VectorType>(holds.getType()) ? mask.lanes : mask.uniform;
    all = all ? builder_->create<arith::AndIOp>(loc_, all, holds).getResult() : holds;
  }
  return mask;
}

Evaluator::Mask Evaluator::guardMask() {
  SmallVector<AffineExpr> all;
  for (const Guard &guard : guards)
    llvm::append_range(all, guard.nonNegative);
  return maskOf(all);
}

Value Evaluator::toLanes(Mask mask, bool withTail) {
  Value result = mask.lanes;
  auto conjoin = [&](Value one) {
    result = result ? builder_->create<arith::AndIOp>(loc_, result, one).getResult() : one;
  };
  if (mask.uniform)
    conjoin(splat(mask.uniform));
  LoopScope *in = laneScope();
  if (withTail && in && in->tail)
    conjoin(in->tail);
  return result;
}

// Reductions.

SmallVector<Value> Evaluator::reduce(ArrayRef<int64_t> extents, ValueRange initial, const Step &step,
                                     const Combine &combine) {
  return Fold(*this, extents, initial, step, combine).emit();
}

AffineExpr Evaluator::trialVariable(unsigned position, int64_t extent) {
  AffineExpr &variable = trialVariables[{position, capacityOf(extent)}];
  if (!variable) {
    variables.push_back({&scopes.front(), nullptr});
    variable = space.addVariable({0, std::max<int64_t>(capacityOf(extent) - 1, 0)});
  }
  return variable;
}

SmallVector<FoldShape> Evaluator::survey(Operation *op) {
  Trial seen;
  Region region;
  OpBuilder::InsertionGuard guard(*builder_);
  builder_->setInsertionPointToStart(&region.emplaceBlock());
  SmallVector<AffineExpr> index;
  for (auto [position, size] : llvm::enumerate(cast<RankedTensorType>(op->getResult(0).getType()).getShape()))
    index.push_back(trialVariable(position, ShapedType::isDynamic(size) ? kRows : size));
  frames.push_back({op, index});
  trial = &seen;
  cast<ir::ElementOp>(op).buildElement(*this, 0, index);
  trial = nullptr;
  frames.pop_back();
  return seen.folds;
}

SmallVector<Value> Evaluator::partial(Operation *op, AffineExpr chunk, ArrayRef<AffineExpr> index) {
  ChunkRequest asked{op, chunk, {}};
  request = &asked;
  frames.push_back({op, SmallVector<AffineExpr>(index)});
  cast<ir::ElementOp>(op).buildElement(*this, 0, index);
  frames.pop_back();
  request = nullptr;
  return asked.results;
}

} // namespace sluice::cpu
