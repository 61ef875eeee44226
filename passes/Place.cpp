// Gives every value a device, and checks that only copies cross devices.
#include "ir/Layout.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static Type placed(Type type, StringAttr device) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || getDevice(type))
    return type;
  AtAttr at = getAt(type);
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType(), AtAttr::get(type.getContext(), device, at ? at.getLayout() : AffineMapAttr()));
}

void placeValues(ModuleOp module, StringRef device) {
  auto name = StringAttr::get(module.getContext(), device);
  module.walk([&](Operation *op) {
    if (auto state = dyn_cast<StateOp>(op))
      state.setPhysicalAttr(TypeAttr::get(placed(state.getStoredType(), name)));
    for (Value result : op->getResults())
      result.setType(placed(result.getType(), name));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setType(placed(argument.getType(), name));
  });
}

LogicalResult verifyPlaced(ModuleOp module) {
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    for (Value value : op->getResults())
      if (isa<RankedTensorType>(value.getType()) && !getDevice(value.getType()))
        return op->emitError("has a result without a device"), WalkResult::interrupt();
    return verifySameDevice(op);
  });
  return failure(result.wasInterrupted());
}

} // namespace sluice::passes
