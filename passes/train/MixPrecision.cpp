// Brings products to a type of two bytes, and back to f32 what must not be there: PyTorch's autocast on the graph. Where that is
// f16, the loss is scaled (LossScaleAttr).
//
//   %y = sluice.conv2d %x, %w            ==>   %0 = sluice.cast %x {to = bf16};  %1 = sluice.cast %w {to = bf16}
//   %s = sluice.mean %y                        %y = sluice.conv2d %0, %1         (bf16)
//                                              %2 = sluice.cast %y {to = f32};   %s = sluice.mean %2
//
// Which ops go narrow, ops say themselves (ir/Base.td): products do; what moves elements or rounds once follows them; a
// norm is computed in f32 and rounded; all others, reductions and losses among them, stay in f32. Inputs, outputs, metrics,
// the loss and states keep their types: weights are cast where they are read, once each.
//
// Formulas of constants, counts and parameters are computed in f32, and their results are cast. f16 and bf16 would
// round integers and small differences in such formulas. Ops of a formula that only move elements run on narrow
// elements, which gives the same results.
//
// It works on the graph, before gradients are made: the gradient of an op is then in the type of the op, that of a cast is a
// cast back, so that the gradient of a weight is f32 before the optimizer sees it; and all entry points compute alike.
// What casts back and forth is left to `simplify`.
#include "ir/Module.h"
#include "ir/build/Node.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/place/InheritDevice.h"
#include <cmath>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static bool isWide(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getElementType().isF32();
}

namespace {

class PrecisionMix {
public:
  PrecisionMix(GraphOp graph, FloatType narrow)
      : builder(graph.getContext()), graph(graph), symbols(graph->getParentOfType<ModuleOp>()), narrow(narrow) {}

  void run() { run(graph.getBody().front()); }

private:
  /// What is in scans and branches, too.
  void run(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      for (Region &region : op.getRegions())
        run(region.front());
      mix(&op);
    }
  }

  void mix(Operation *op) {
    if (op->hasTrait<ComputesNarrow>() && llvm::any_of(op->getOperands(), isWide))
      return computeNarrow(op);
    if (op->hasTrait<RoundsNarrow>() && isNarrow(op->getOperand(0)))
      return roundResult(op);
    if (!op->hasTrait<FollowsPrecision>())
      return;
    if (!isHeld(op))
      return;
    auto operands = llvm::make_filter_range(op->getOperands(), isWide);
    if (llvm::all_of(operands, [this](Value operand) { return isParameter(operand); }))
      madeOfParameters.insert(op);
    else if (llvm::any_of(operands, [this](Value operand) { return isNarrow(operand); }) &&
             llvm::all_of(operands, [this](Value operand) { return isNarrow(operand) || isParameter(operand); }))
      computeNarrow(op);
  }

  /// Whether the narrow type represents a constant, whose numbers are the attribute `value`; true for other ops.
  /// Rounding must not turn finite numbers into infinities or nonzero numbers into zeros. Consumers of constants that
  /// the type does not represent, such as -1e9 or 1e-8 in f16, compute in f32.
  bool isHeld(Operation *op) const {
    auto isHeldNumber = [this](double number) {
      double kept = roundTo(narrow, number);
      return !std::isfinite(number) || (std::isfinite(kept) && (kept != 0) == (number != 0));
    };
    Attribute value = op->getNumOperands() == 0 ? op->getAttr("value") : Attribute();
    if (auto number = dyn_cast_or_null<FloatAttr>(value))
      return isHeldNumber(number.getValueAsDouble());
    auto elements = dyn_cast_or_null<DenseFPElementsAttr>(value);
    return !elements ||
           llvm::all_of(elements, [&](const APFloat &number) { return isHeldNumber(number.convertToDouble()); });
  }

  /// Whether the op only moves the elements of its operands, so that operands may be rounded before it.
  static bool movesElements(Operation *op) {
    auto elements = dyn_cast<ElementOp>(op);
    return elements && elements.getFusionKind() == FusionKind::Injective && op->getNumOperands() > 0;
  }

  /// Whether the value, of f32, has been widened from a narrow one.
  bool isNarrow(Value value) const { return widened.contains(value); }

  /// Whether it is a parameter, a constant or made of these alone, by ops that may follow.
  bool isParameter(Value value) const {
    Operation *op = value.getDefiningOp();
    if (auto get = dyn_cast_or_null<GetOp>(op)) {
      auto state = symbols.lookup<StateOp>(get.getStateAttr().getAttr());
      return state.getKind() == StateKind::Parameter || state.getKind() == StateKind::Constant;
    }
    return op && madeOfParameters.contains(op);
  }

  /// Puts the op on narrow operands in its place; who reads its results reads them widened.
  void computeNarrow(Operation *op) {
    Operation *copy = cloneNarrow(op);
    builder.setInsertionPointAfter(copy);
    InheritDevice devices(builder, op);
    for (auto [result, computed] : llvm::zip_equal(op->getResults(), copy->getResults()))
      result.replaceAllUsesWith(isWide(result) ? widen(computed) : computed);
    op->erase();
  }

  /// Rounds the first result, which stays what readers of f32 read.
  void roundResult(Operation *op) {
    builder.setInsertionPointAfter(op);
    InheritDevice devices(builder, op);
    Value result = op->getResult(0), rounded = castTo(result, narrow), wide = widen(rounded);
    result.replaceAllUsesExcept(wide, rounded.getDefiningOp());
  }

  Operation *cloneNarrow(Operation *op) {
    IRMapping mapping;
    for (Value operand : op->getOperands())
      if (isWide(operand))
        mapping.map(operand, narrowed(operand));
    builder.setInsertionPoint(op);
    Operation *copy = builder.clone(*op, mapping);
    for (auto [result, inferred] : llvm::zip_equal(copy->getResults(), inferTypes(copy)))
      result.setType(withElement(result.getType(), cast<RankedTensorType>(inferred).getElementType()));
    return copy;
  }

  /// What the op's results are of now: narrow, or what sums of narrow elements are of.
  static SmallVector<Type> inferTypes(Operation *op) {
    SmallVector<Type> types;
    LogicalResult inferred = cast<InferTypeOpInterface>(op).inferReturnTypes(
        op->getContext(), op->getLoc(), op->getOperands(), op->getDiscardableAttrDictionary(),
        op->getPropertiesStorage(), op->getRegions(), types);
    assert(succeeded(inferred) && "an op that computes in narrow types has them");
    (void)inferred;
    return types;
  }

  /// The value in the narrow type, created once. Movements of parameters are done on narrow values, so that the cast
  /// applies to the parameter as it is stored. A product can then still fuse the movement, for example the repetition
  /// of a bias that is added to it.
  Value narrowed(Value value) {
    if (Value known = widened.lookup(value))
      return known;
    if (Value known = rounded.lookup(value))
      return known;
    Operation *op = value.getDefiningOp();
    if (op && madeOfParameters.contains(op) && movesElements(op))
      return rounded[value] = cloneNarrow(op)->getResult(cast<OpResult>(value).getResultNumber());
    builder.setInsertionPointAfterValue(value);
    InheritDevice devices(builder, getDevice(value.getType()), pinOf(value, symbols));
    return rounded[value] = castTo(value, narrow);
  }

  Value widen(Value value) {
    Value wide = castTo(value, builder.getF32Type());
    widened[wide] = value;
    return wide;
  }

  Value castTo(Value value, Type element) { return ir::castTo(Node(builder, value.getLoc(), value), element); }

  OpBuilder builder;
  GraphOp graph;
  SymbolTable symbols;
  FloatType narrow;
  DenseMap<Value, Value> widened;         // narrow values, by what they are in f32
  DenseMap<Value, Value> rounded;         // narrow values that others were rounded to
  DenseSet<Operation *> madeOfParameters; // and of constants
};

} // namespace

/// The range of f16 ends where gradients often are.
static void scaleLoss(GraphOp graph) {
  for (auto minimize : graph.getBody().getOps<MinimizeOp>())
    if (!minimize.getLossScaleAttr())
      minimize.setLossScaleAttr(LossScaleAttr::getDefault(graph.getContext()));
}

void mixPrecision(ModuleOp module) {
  Precision precision = getPrecision(module);
  if (precision == Precision::F32)
    return;
  for (auto graph : module.getOps<GraphOp>()) {
    PrecisionMix(graph, typeOf(module.getContext(), precision)).run();
    if (precision == Precision::F16)
      scaleLoss(graph);
  }
}

} // namespace sluice::passes
