#include "backends/loops/Elements.h"

#include "backends/loops/Fold.h"
#include "ir/Layout.h"
#include "ir/build/Lane.h"
#include "mlir/IR/TypeUtilities.h"

namespace sluice::loops {

using namespace mlir;

Elements::Elements(Emitter &emitter, Formulas &formulas, int64_t capacity)
    : emitter(emitter), formulas(formulas), capacity(capacity), scopes_(emitter) {}

SmallVector<AffineExpr> Elements::normalize(ArrayRef<AffineExpr> index) {
  return llvm::map_to_vector(index, [&](AffineExpr expr) { return emitter.space().normalize(expr); });
}

// Emitted elements.

bool Elements::isActive(unsigned guard) const {
  return guard == 0 || llvm::any_of(guards, [&](const Guard &active) { return active.id == guard; });
}

const Scope::Entry *Elements::lookup(Scope *in, const void *key, ArrayRef<AffineExpr> index) {
  auto entries = in->found.find(key);
  if (entries == in->found.end())
    return nullptr;
  for (const Scope::Entry &entry : entries->second)
    if (ArrayRef(entry.index) == index && isActive(entry.guard))
      return &entry;
  return nullptr;
}

void Elements::remember(Scope *in, const void *key, ArrayRef<AffineExpr> index, ArrayRef<Element> elements,
                        Scope *home) {
  in->found[key].push_back({SmallVector<AffineExpr>(index), activeGuard(), SmallVector<Element>(elements), home});
}

void Elements::seed(Value value, ArrayRef<AffineExpr> index, Element element) {
  Scope *scope = scopes_.current();
  scope->found[value.getAsOpaquePointer()].push_back({normalize(index), 0, {element}, scope});
  scope->seeds.push_back(value);
}

// Elements.

Element Elements::zero(Type element) {
  return emitter.constant(cast<TypedAttr>(Builder(element.getContext()).getZeroAttr(ir::getLaneElement(element))));
}

Elements::Found Elements::fail(Operation *op, Type type) {
  if (!failed)
    op->emitOpError("has no element-wise definition, so no loop nest can place it in a kernel");
  failed = true;
  return {zero(getElementTypeOrSelf(type)), scopes_.outermost()};
}

bool Elements::isComputedFrom(Value value, Value seed) {
  if (value == seed)
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || memories.contains(value))
    return false;
  auto [known, isNew] = computedFrom.try_emplace({value, seed}, false);
  if (!isNew)
    return known->second;
  bool result = llvm::any_of(op->getOperands(), [&](Value operand) { return isComputedFrom(operand, seed); });
  return computedFrom[{value, seed}] = result;
}

/// The scope of an element's variables, or of a seed that it is computed from. A seed is in the scope of its loop,
/// which may be deeper than its indices require.
Scope *Elements::scopeFor(Value value, ArrayRef<AffineExpr> index) {
  Scope *outermost = scopes_.of(index, guardScope());
  for (Scope *in = scopes_.current(); in->depth > outermost->depth; in = in->parent)
    if (llvm::any_of(in->seeds, [&](Value seed) { return isComputedFrom(value, seed); }))
      return in;
  return outermost;
}

Elements::Found Elements::find(Value value, ArrayRef<AffineExpr> index) {
  if (failed)
    return {zero(getElementTypeOrSelf(value.getType())), scopes_.outermost()};
  SmallVector<AffineExpr> normal = normalize(index);
  const void *key = value.getAsOpaquePointer();
  for (Scope *in = scopes_.current(); in; in = in->parent)
    if (const Scope::Entry *entry = lookup(in, key, normal))
      return {entry->elements[0], entry->home};
  Scope *target = scopeFor(value, normal);
  return scopes_.in(target, [&] {
    Found result = compute(value, normal);
    remember(target, key, normal, result.element, result.home);
    storeIfAsked(value, normal, result.element);
    return result;
  });
}

Elements::Found Elements::compute(Value value, ArrayRef<AffineExpr> index) {
  if (auto memory = memories.find(value); memory != memories.end())
    return here(load(memory->second, offsetOf(memory->second.type, index)));
  Operation *op = value.getDefiningOp();
  assert(op && "block arguments are bound to buffers");
  if (auto constant = dyn_cast<ir::ConstantOp>(op))
    return computeConstant(constant, index);
  const Formula *formula = formulas.of(op, cast<OpResult>(value).getResultNumber());
  if (!formula)
    return fail(op, value.getType());
  Frame frame = frameOf(*formula, index);
  follow(frame, formula->body);
  return frame.values[formula->body.results[0]];
}

Elements::Found Elements::computeConstant(ir::ConstantOp op, ArrayRef<AffineExpr> index) {
  auto elements = cast<DenseElementsAttr>(op.getValue());
  Type element = ir::getLaneElement(elements.getElementType());
  if (!elements.isSplat()) {
    auto type = RankedTensorType::get(elements.getType().getShape(), elements.getElementType());
    AffineExpr offset = offsetOf(type, index);
    return here(emitter.load(elements, offset, scopes_.lanes(), guardCondition()));
  }
  auto number = elements.getSplatValue<TypedAttr>();
  if (auto integer = dyn_cast<IntegerAttr>(number))
    number = IntegerAttr::get(element, integer.getValue());
  else if (ir::isHalf(elements.getElementType()))
    number = FloatAttr::get(element, cast<FloatAttr>(number).getValueAsDouble());
  return constant(number);
}

// If the index does not depend on lanes, all lanes have the same element, so that inner contiguous accesses stay
// contiguous.
AffineExpr Elements::dataIndex(Value value, ArrayRef<AffineExpr> index, int64_t size) {
  Found found = find(value, index);
  std::pair<const void *, int64_t> key{found.element.get(), size};
  if (AffineExpr known = found.home->indices.lookup(key))
    return known;
  bool isSame = llvm::none_of(normalize(index), [&](AffineExpr expr) { return emitter.space().usesLane(expr); });
  AffineExpr variable = scopes_.in(found.home, [&] { return scopes_.dataVariable(found.element, isSame, size); });
  return found.home->indices[key] = variable;
}

SmallVector<Element> Elements::partial(Operation *op, AffineExpr chunk, ArrayRef<AffineExpr> index) {
  ChunkRequest asked{op, chunk, {}};
  request = &asked;
  const Formula *formula = formulas.of(op, 0);
  Frame frame = frameOf(*formula, index);
  follow(frame, formula->body);
  request = nullptr;
  return asked.results;
}

// Following a formula.

Elements::Frame Elements::frameOf(const Formula &formula, ArrayRef<AffineExpr> index) {
  Frame frame{formula, SmallVector<AffineExpr>(index), {}};
  frame.dims.resize(formula.numDims);
  frame.values.resize(formula.numValues);
  return frame;
}

SmallVector<Element> Elements::follow(Frame &frame, const Steps &steps) {
  for (const Step &step : steps.steps)
    std::visit([&](const auto &what) { follow(frame, step, what); }, step.what);
  return llvm::map_to_vector(steps.results, [&](ValueNumber number) { return frame.values[number].element; });
}

void Elements::setValues(Frame &frame, ArrayRef<ValueNumber> numbers, ArrayRef<Element> elements) {
  for (auto [number, element] : llvm::zip_equal(numbers, elements))
    frame.values[number] = here(element);
}

AffineExpr Elements::place(const Frame &frame, AffineExpr index) {
  if (auto dim = dyn_cast<AffineDimExpr>(index))
    return frame.dims[dim.getPosition()];
  return index.replaceDims(frame.dims);
}

SmallVector<AffineExpr> Elements::place(const Frame &frame, ArrayRef<AffineExpr> index) {
  return llvm::map_to_vector(index, [&](AffineExpr expr) { return place(frame, expr); });
}

void Elements::follow(Frame &frame, const Step &step, const Number &what) {
  frame.values[step.result] = constant(what.value);
}

/// Values, and the outermost scope that has all of them. Arithmetic on them is emitted there. A fold that uses the
/// result can then be in that scope, too: for example, a variance uses a mean.
std::pair<SmallVector<Element>, Scope *> Elements::together(const Frame &frame, ArrayRef<ValueNumber> numbers) {
  SmallVector<Element> elements;
  Scope *home = scopes_.outermost();
  for (ValueNumber number : numbers) {
    const Found &found = frame.values[number];
    elements.push_back(found.element);
    home = found.home->depth > home->depth ? found.home : home;
  }
  return {elements, home};
}

void Elements::follow(Frame &frame, const Step &step, const Arithmetic &what) {
  auto [operands, home] = together(frame, what.operands);
  frame.values[step.result] = {scopes_.in(home, [&] { return emitter.apply(what.op, operands); }), home};
}

/// The results of a function's body, emitted in one scope.
static SmallVector<Element> applyAll(Emitter &emitter, const Call &what, ArrayRef<Element> arguments) {
  llvm::DenseMap<ValueNumber, Element> values;
  for (auto [number, argument] : llvm::zip_equal(what.arguments, arguments))
    values[number] = argument;
  auto elementsOf = [&](ArrayRef<ValueNumber> numbers) {
    return llvm::map_to_vector(numbers, [&](ValueNumber number) { return values.at(number); });
  };
  for (const Step &step : what.body.steps) {
    auto *number = std::get_if<Number>(&step.what);
    auto *arithmetic = std::get_if<Arithmetic>(&step.what);
    values[step.result] =
        number ? emitter.constant(number->value) : emitter.apply(arithmetic->op, elementsOf(arithmetic->operands));
  }
  return elementsOf(what.body.results);
}

void Elements::follow(Frame &frame, const Step &step, const Call &what) {
  auto [operands, home] = together(frame, what.operands);
  auto body = [&](Emitter &inside, ArrayRef<Element> arguments) { return applyAll(inside, what, arguments); };
  std::optional<SmallVector<Element>> called =
      scopes_.in(home, [&] { return emitter.call(what.name, operands, body); });
  if (!called) {
    for (auto [argument, operand] : llvm::zip_equal(what.arguments, what.operands))
      frame.values[argument] = frame.values[operand];
    follow(frame, what.body);
  }
  for (auto [i, inside] : llvm::enumerate(what.body.results))
    frame.values[step.result + i] = called ? Found{(*called)[i], home} : frame.values[inside];
}

void Elements::follow(Frame &frame, const Step &step, const Read &what) {
  frame.values[step.result] = find(frame.formula.op->getOperand(what.operand), place(frame, what.index));
}

void Elements::follow(Frame &frame, const Step &, const DataIndex &what) {
  frame.dims[what.dim] = dataIndex(frame.formula.op->getOperand(what.operand), place(frame, what.index), what.size);
}

void Elements::follow(Frame &frame, const Step &step, const IndexValue &what) {
  frame.values[step.result] = here(emitter.index(place(frame, what.index), what.type));
}

void Elements::follow(Frame &frame, const Step &step, const RowCount &what) {
  Scope *outermost = scopes_.outermost();
  frame.values[step.result] = {scopes_.in(outermost, [&] { return emitter.rows(what.type); }), outermost};
}

void Elements::follow(Frame &frame, const Step &step, const Guarded &what) {
  auto then = [&] {
    follow(frame, what.then);
    return frame.values[what.then.results[0]];
  };
  frame.values[step.result] = guardedIn(place(frame, what.nonNegative), then, frame.values[what.otherwise]);
}

void Elements::follow(Frame &frame, const Step &step, const Reduction &what) {
  Fold fold(*this, frame, what);
  SmallVector<Element> results = fold.emit();
  for (auto [i, element] : llvm::enumerate(results))
    frame.values[step.result + i] = {element, fold.home()};
}

// Memory.

AffineExpr offsetIn(RankedTensorType type, ArrayRef<AffineExpr> index, int64_t capacity) {
  SmallVector<ir::PhysicalDim> dims = *ir::getPhysicalDims(type);
  SmallVector<int64_t> shape = ir::getPhysicalShape(type, capacity);
  AffineExpr offset = getAffineConstantExpr(0, type.getContext());
  int64_t stride = 1;
  for (int64_t i = int64_t(dims.size()) - 1; i >= 0; --i) {
    AffineExpr logical = index[dims[i].logical];
    if (dims[i].kind == ir::PhysicalDim::Div)
      logical = logical.floorDiv(dims[i].tile);
    else if (dims[i].kind == ir::PhysicalDim::Mod)
      logical = logical % dims[i].tile;
    offset = offset + logical * stride;
    stride *= shape[i];
  }
  return offset;
}

AffineExpr Elements::offsetOf(RankedTensorType type, ArrayRef<AffineExpr> index) {
  return emitter.space().normalize(offsetIn(type, index, capacity));
}

Element Elements::load(const Memory &memory, AffineExpr offset) {
  Condition held = guardCondition();
  return emitter.load(memory, offset, scopes_.lanes(), held);
}

void Elements::store(const Memory &memory, AffineExpr offset, Element element) {
  emitter.store(memory, offset, scopes_.lanes(), element);
}

Element Elements::loadToStore(const Memory &memory, AffineExpr offset) {
  return emitter.loadToStore(memory, offset, scopes_.lanes());
}

void Elements::storeIfAsked(Value value, ArrayRef<AffineExpr> index, Element element) {
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
  AffineExpr offset = offsetOf(asked->second.memory.type, index), lane = scopes_.lanes().variable;
  if (!left.empty() || (lane && !emitter.space().isContiguous(offset, lane)))
    return;
  store(asked->second.memory, offset, element);
  ++asked->second.stores;
}

// Guards.

Element Elements::guarded(ArrayRef<AffineExpr> nonNegative, llvm::function_ref<Element()> then, Element otherwise) {
  return guardedIn(nonNegative, [&] { return here(then()); }, here(otherwise)).element;
}

Elements::Found Elements::guardedIn(ArrayRef<AffineExpr> nonNegative, llvm::function_ref<Found()> then,
                                    Found otherwise) {
  Guard guard{nextGuard++, {}};
  for (AffineExpr expr : nonNegative) {
    Interval range = emitter.space().range(expr);
    if (range.high < 0)
      return otherwise;
    if (range.low < 0)
      guard.nonNegative.push_back(emitter.space().normalize(expr));
  }
  if (guard.nonNegative.empty())
    return then();
  guards.push_back(guard);
  Found inside = then();
  guards.pop_back();
  Condition held = allOf(guard.nonNegative);
  return here(emitter.select(held, inside.element, otherwise.element));
}

// Guarded reads must not be hoisted out of the loops whose variables the conditions use.
Scope *Elements::guardScope() {
  Scope *deepest = scopes_.outermost();
  for (const Guard &guard : guards)
    deepest = scopes_.of(guard.nonNegative, deepest);
  return deepest;
}

Condition Elements::condition(AffineExpr nonNegative) {
  Scope *target = scopes_.of(nonNegative, scopes_.outermost());
  if (Condition known = target->conditions.lookup(nonNegative))
    return known;
  return scopes_.in(target, [&] { return target->conditions[nonNegative] = emitter.isNonNegative(nonNegative); });
}

Condition Elements::allOf(ArrayRef<AffineExpr> nonNegative, Condition before) {
  for (AffineExpr expr : nonNegative) {
    Condition holds = condition(expr);
    before = before ? emitter.both(before, holds) : holds;
  }
  return before;
}

Condition Elements::guardCondition() {
  Condition all;
  for (const Guard &guard : guards)
    all = allOf(guard.nonNegative, all);
  return all;
}

} // namespace sluice::loops
