// Reverse-mode differentiation.
//
//   %y = sluice.exp %x          ==>   %dX = sluice.mul %dY, %y
//
// 1. An op is active if it depends on one of the `wrt` values through values of floating-point type.
// 2. From the last op to the first, each active op whose results have gradients adds to its operands' gradients. A
//    FormulaGradientOp is differentiated through its formula, which is built next to the op. Gradients of one value are
//    summed in reverse order of its users, which the graph determines.
//
// Gradient ops run on the device of their forward op. The gradient of a value with a fixed device is on that device: if
// a user is elsewhere, the gradient is copied back.
#include "passes/train/Differentiate.h"
#include "ir/build/Node.h"
#include "passes/place/InheritDevice.h"
#include "passes/train/Gradients.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

bool isFloat(Value value) { return isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType()); }

//===- active values ----------------------------------------------------------------------------------------------===//

static bool addIf(bool isActive, Value value, ActiveValues &active) {
  return isActive && isFloat(value) && active.insert(value).second;
}

/// Marks the counterparts of active values as active; returns whether any is new.
static bool addActive(ValueRange from, ValueRange to, ActiveValues &active) {
  bool isNew = false;
  for (auto [value, other] : llvm::zip_equal(from, to))
    isNew |= addIf(active.contains(value), other, active);
  return isNew;
}

/// Values that are active after a step are active in the next step.
static void addActive(ScanOp scan, ActiveValues &active) {
  addActive(scan.getXs(), scan.getSlices(), active);
  addActive(scan.getFirst(), scan.getCarried(), active);
  do
    addActive(scan.getStepBlock(), active);
  while (addActive(scan.getStep().getNext(), scan.getCarried(), active));
  addActive(scan.getCarried(), scan.getLast(), active);
  addActive(scan.getStep().getNext(), scan.getLast(), active);
  addActive(scan.getStep().getStacked(), scan.getStacks(), active);
}

/// A result is active if it is in either branch.
static void addActive(IfOp op, ActiveValues &active) {
  for (unsigned branch : {0, 1}) {
    YieldOp yield = op.getYield(branch);
    addActive(*yield->getBlock(), active);
    addActive(yield.getValues(), op.getResults(), active);
  }
}

/// For an opaque identity (`variable`, `saved`): its operand. Null for other ops.
static Value identityOf(Operation &op) {
  if (auto variable = dyn_cast<VariableOp>(op))
    return variable.getX();
  auto saved = dyn_cast<SavedOp>(op);
  return saved ? saved.getValue() : Value();
}

void addActive(Operation &op, ActiveValues &active) {
  if (Value x = identityOf(op)) {
    addIf(active.contains(x), op.getResult(0), active);
    return;
  }
  if (auto scan = dyn_cast<ScanOp>(op))
    return addActive(scan, active);
  if (auto branch = dyn_cast<IfOp>(op))
    return addActive(branch, active);
  bool isActive = !op.hasTrait<NoGradient>() &&
                  llvm::any_of(op.getOperands(), [&](Value operand) { return active.contains(operand); });
  for (Value result : op.getResults())
    addIf(isActive, result, active);
}

void addActive(Block &block, ActiveValues &active) {
  for (Operation &op : block)
    addActive(op, active);
}

//===- gradients --------------------------------------------------------------------------------------------------===//

void Gradients::add(Value value, Value gradient) {
  gradient = bringTo(value, gradient);
  Value &sum = gradients[value];
  if (!sum) {
    sum = gradient;
    return;
  }
  StringAttr shared = pinOf(sum), pin = shared == pinOf(gradient) ? shared : pinOf(value);
  InheritDevice devices(builder, getDevice(value.getType()), pin);
  sum = Node(builder, value.getLoc(), sum) + Node(builder, value.getLoc(), gradient);
}

Value Gradients::bringTo(Value value, Value gradient) {
  StringAttr here = getDevice(value.getType()), there = getDevice(gradient.getType());
  if (!there || there == here)
    return gradient;
  return builder.create<CopyOp>(value.getLoc(), withDevice(gradient.getType(), here), gradient, CopyReason::Placement);
}

LogicalResult Gradients::propagate(Operation *op, const ActiveValues &active) {
  if (auto scan = dyn_cast<ScanOp>(op))
    return differentiateScan(scan, *this, active, builder);
  if (auto branch = dyn_cast<IfOp>(op))
    return differentiateBranch(branch, *this, active, builder);
  if (Value x = identityOf(*op)) {
    if (Value gradient = lookup(op->getResult(0)); gradient && active.contains(x))
      add(x, gradient);
    return success();
  }
  SmallVector<Value> dResults = llvm::map_to_vector(op->getResults(), [&](Value result) { return lookup(result); });
  bool reached = llvm::any_of(dResults, [](Value gradient) { return bool(gradient); });
  bool wanted = llvm::any_of(op->getOperands(), [&](Value operand) { return active.contains(operand); });
  if (!reached || !wanted || op->hasTrait<NoGradient>())
    return success();
  if (auto formula = dyn_cast<FormulaGradientOp>(op))
    return propagateThroughFormula(formula, dResults, active);
  auto differentiable = dyn_cast<DifferentiableOp>(op);
  if (!differentiable)
    return failAt(op);
  SmallVector<Value> dOperands;
  {
    InheritDevice devices(builder, op);
    dOperands = differentiable.buildGradient(builder, dResults);
  }
  for (auto [operand, gradient] : llvm::zip_equal(op->getOperands(), dOperands))
    if (gradient && active.contains(operand))
      add(operand, gradient);
  return success();
}

LogicalResult Gradients::propagateThroughFormula(FormulaGradientOp op, ValueRange dResults, ActiveValues active) {
  Block &block = *builder.getInsertionBlock();
  Block::iterator end = builder.getInsertionPoint();
  Operation *before = end == block.begin() ? nullptr : &*std::prev(end);
  SmallVector<Value> results;
  {
    InheritDevice devices(builder, op);
    results = op.buildFormula(builder);
  }
  if (results.empty())
    return failAt(op);
  SmallVector<Operation *> formula;
  for (Operation &part : llvm::make_range(before ? std::next(before->getIterator()) : block.begin(), end)) {
    addActive(part, active);
    formula.push_back(&part);
  }
  for (auto [result, gradient] : llvm::zip_equal(results, dResults))
    if (gradient && active.contains(result))
      add(result, gradient);
  for (Operation *part : llvm::reverse(formula))
    if (failed(propagate(part, active)))
      return failure();
  return success();
}

LogicalResult Gradients::failAt(Operation *op) {
  InFlightDiagnostic error = mlir::emitError(asked);
  error << "cannot differentiate: '" << op->getName() << "' of " << op->getResult(0).getType()
        << " has no gradient, and the loss depends on it";
  error.attachNote(op->getLoc()) << "the op comes from this line";
  return error;
}

FailureOr<SmallVector<Value>> differentiate(OpBuilder &builder, Location asked, Value loss, ValueRange wrt) {
  auto type = cast<RankedTensorType>(loss.getType());
  if (type.getRank() != 0)
    return emitError(loss.getLoc(), "the loss is not a scalar: ") << printShape(type.getShape());
  Block &block = *builder.getInsertionBlock();
  ActiveValues active(wrt.begin(), wrt.end());
  addActive(block, active);
  SmallVector<Operation *> forward;
  for (Operation &op : llvm::make_range(block.begin(), builder.getInsertionPoint()))
    forward.push_back(&op);

  Gradients gradients(builder, asked);
  gradients.add(loss, Node(builder, loss.getLoc(), loss).like(1.0));
  for (Operation *op : llvm::reverse(forward))
    if (failed(gradients.propagate(op, active)))
      return failure();
  return llvm::map_to_vector(wrt, [&](Value value) { return gradients.lookup(value); });
}

} // namespace sluice::passes
