// Computes products in a two-byte type and casts back to f32 where that is required: PyTorch's autocast on the graph.
// With f16, the loss is scaled (LossScaleAttr).
//
//   %y = sluice.conv2d %x, %w            ==>   %0 = sluice.cast %x {to = bf16};  %1 = sluice.cast %w {to = bf16}
//   %s = sluice.mean %y                        %y = sluice.conv2d %0, %1         (bf16)
//                                              %2 = sluice.cast %y {to = f32};   %s = sluice.mean %2
//
// Each op declares whether it is narrow (ir/Base.td). Products are. Ops that move elements or round once follow their
// operands. A norm is computed in f32 and rounded. All others, such as reductions and losses, stay in f32. Inputs,
// outputs, metrics, the loss and states keep their types: weights are cast once each where they are read.
//
// Formulas of constants, counts and parameters are computed in f32, and their results are cast. f16 and bf16 would
// round integers and small differences in such formulas. Ops of a formula that only move elements run on narrow
// elements, which gives the same results.
//
// The pass runs on the graph before differentiation. The gradient of an op then has the op's type, and that of a cast
// is a cast back, so the optimizer receives f32 gradients of weights. All entry points also compute alike. `simplify`
// removes redundant casts.
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
  /// Includes the bodies of scans and branches.
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

  /// Whether the narrow type represents the numbers that an op adds to its result: those of a constant, the value of a
  /// padding, and the bounds of a clip. Consumers of a constant that the type does not represent, such as -1e9, 1e-8
  /// or 1e-6 in f16, compute in f32, and so do such a padding and such a clip.
  bool isHeld(Operation *op) const {
    for (StringRef name : {"value", "min", "max"}) {
      Attribute value = op->getAttr(name);
      if (auto number = dyn_cast_or_null<FloatAttr>(value); number && !isHeld(number.getValueAsDouble()))
        return false;
      if (auto elements = dyn_cast_or_null<DenseFPElementsAttr>(value))
        if (!llvm::all_of(elements, [&](const APFloat &number) { return isHeld(number.convertToDouble()); }))
          return false;
    }
    return !roundsToOne(op);
  }

  /// Rounding must keep the precision of the type. It must not turn finite numbers into infinities, nonzero numbers
  /// into zeros, or small numbers into subnormal ones of a few bits.
  bool isHeld(double number) const {
    double unit = std::ldexp(1.0, -int(FloatType(narrow).getFPMantissaWidth()));
    return !std::isfinite(number) || std::abs(roundTo(narrow, number) - number) <= unit * std::abs(number);
  }

  /// Whether a bound of a clip, such as 1 - 1e-7 of a probability, becomes 1: the logarithm of its complement is -inf.
  bool roundsToOne(Operation *op) const {
    return llvm::any_of(ArrayRef<StringRef>{"min", "max"}, [&](StringRef name) {
      auto bound = op->getAttrOfType<FloatAttr>(name);
      double number = bound ? bound.getValueAsDouble() : 0;
      return std::abs(number) != 1 && std::abs(roundTo(narrow, number)) == 1;
    });
  }

  /// Whether the op only moves the elements of its operands, so that operands may be rounded before it.
  static bool movesElements(Operation *op) {
    auto elements = dyn_cast<ElementOp>(op);
    return elements && elements.getFusionKind() == FusionKind::Injective && op->getNumOperands() > 0;
  }

  /// Whether the f32 value is a widened narrow value.
  bool isNarrow(Value value) const { return widened.contains(value); }

  /// Whether the value is a parameter, a constant, or computed from these alone by ops that follow their operands.
  bool isParameter(Value value) const {
    Operation *op = value.getDefiningOp();
    if (auto get = dyn_cast_or_null<GetOp>(op)) {
      auto state = symbols.lookup<StateOp>(get.getStateAttr().getAttr());
      return state.getKind() == StateKind::Parameter || state.getKind() == StateKind::Constant;
    }
    return op && madeOfParameters.contains(op);
  }

  /// Replaces the op by one on narrow operands; consumers of its results read them widened.
  void computeNarrow(Operation *op) {
    Operation *copy = cloneNarrow(op);
    builder.setInsertionPointAfter(copy);
    InheritDevice devices(builder, op);
    for (auto [result, computed] : llvm::zip_equal(op->getResults(), copy->getResults()))
      result.replaceAllUsesWith(isWide(result) ? widen(computed) : computed);
    op->erase();
  }

  /// Rounds the first result; consumers of the f32 value are unchanged.
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

  /// The new types of the op's results: narrow, or the type of a sum of narrow elements.
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
  DenseMap<Value, Value> widened;         // narrow values, by their f32 values
  DenseMap<Value, Value> rounded;         // narrow values, by the f32 values from which they are rounded
  DenseSet<Operation *> madeOfParameters; // also of constants
};

} // namespace

/// Gradients often exceed the range of f16.
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
