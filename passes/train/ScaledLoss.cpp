#include "passes/train/ScaledLoss.h"
#include "ir/build/Node.h"
#include "passes/place/InheritDevice.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

StringAttr ScaledLoss::placeOf(Value value) const {
  StringAttr device = getDevice(value.getType());
  return device ? device : states.pinOf(value);
}

static constexpr llvm::StringLiteral kLossScale = "loss_scale", kGoodSteps = "loss_scale.good_steps";

FailureOr<Value> ScaledLoss::scale(Value loss, Type element) {
  if (!rule)
    return loss;
  auto module = minimize->getParentOfType<ModuleOp>();
  for (StringRef name : {kLossScale, kGoodSteps})
    if (Operation *other = module.lookupSymbol(name))
      return other->emitError("'") << name << "' is reserved for the scale of the loss; choose another name";
  device = getDevice(loss.getType());
  pin = pinOf(loss);
  StringAttr home = placeOf(loss);
  auto create = [&](StringRef name, Type type, double first) {
    auto scalar = RankedTensorType::get({}, type);
    return states.create(minimize.getLoc(), name, StateKind::Step, scalar, first, /*of=*/{},
                         home ? TypeAttr::get(withDevice(scalar, home)) : TypeAttr());
  };
  scaleState = create(kLossScale, element, rule.getInitScale().getValueAsDouble());
  goodStepsState = create(kGoodSteps, builder.getI32Type(), 0);
  scaleNow = states.read(builder, scaleState, withDevice(scaleState.getTensorType(), device));
  goodSteps = states.read(builder, goodStepsState, withDevice(goodStepsState.getTensorType(), device));
  InheritDevice devices(builder, device, pin);
  Node wide = widened(Node(builder, loss.getLoc(), loss));
  return Value(wide * castTo(Node(builder, loss.getLoc(), scaleNow), wide.type().getElementType()));
}

/// The condition on the device of a value. The sum is copied there, like that of a clip.
Value ScaledLoss::isFiniteAt(Value neighbour) {
  bool isThere = isa_and_nonnull<CopyOp>(sum.getDefiningOp()) || placeOf(neighbour) == placeOf(sum);
  if (!isThere && !anywhere)
    anywhere = copyAnywhere(builder, sum);
  return rule.buildIsFinite(builder, neighbour.getLoc(), isThere ? sum : anywhere);
}

Value ScaledLoss::kept(Location loc, Value next, Value before) {
  if (!rule)
    return next;
  Node value(builder, loc, next), isFinite(builder, loc, isFiniteAt(before));
  RankedTensorType type = withElement(value.type(), isFinite.type().getElementType());
  return where(expand(isFinite, {}, type), value, Node(builder, loc, before));
}

void ScaledLoss::advance() {
  if (!rule)
    return;
  Location loc = minimize.getLoc();
  InheritDevice devices(builder, device, pin);
  auto [next, good] = rule.buildNext(builder, loc, scaleNow, goodSteps, isFiniteAt(scaleNow));
  builder.create<SetOp>(loc, scaleState.getSymName(), next);
  builder.create<SetOp>(loc, goodStepsState.getSymName(), good);
}

} // namespace sluice::passes
