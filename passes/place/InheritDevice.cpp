#include "passes/place/InheritDevice.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

StringAttr pinOf(Value value) {
  Operation *op = value.getDefiningOp();
  auto get = dyn_cast_or_null<GetOp>(op);
  auto module = get ? get->getParentOfType<ModuleOp>() : ModuleOp();
  if (auto state = module ? module.lookupSymbol<StateOp>(get.getStateAttr().getAttr()) : StateOp())
    return getDevice(state.getStoredType());
  return op ? getPin(op) : StringAttr();
}

Value copyAnywhere(OpBuilder &builder, Value value) {
  return builder.create<CopyOp>(value.getLoc(), withDevice(value.getType(), {}), value, CopyReason::To);
}

} // namespace sluice::passes
