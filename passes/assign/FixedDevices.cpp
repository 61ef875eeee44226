#include "passes/assign/FixedDevices.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

FixedDevices::FixedDevices(EntryOp entry, const DeviceBackends *backends)
    : backends(backends), isInit(entry.getSymName() == "init") {
  for (BlockArgument argument : entry.getBody().getArguments())
    if (StringAttr device = getDevice(argument.getType()))
      fixedValues[argument] = device;
  entry.getBody().walk<WalkOrder::PreOrder>([this](Operation *op) { visit(*op); });
}

/// The pin; the host for an initial value that the pinned device cannot compute.
StringAttr FixedDevices::whereItCan(Operation *op, StringAttr pin) const {
  bool isKnown = isInit && pin && backends && backends->target().find(pin);
  return isKnown && !backends->reasonAgainst(op, pin).empty() ? StringAttr::get(op->getContext(), kHostDevice) : pin;
}

void FixedDevices::visit(Operation &op) {
  if (op.getNumResults() == 0)
    return;
  if (auto loop = dyn_cast<LoopOp>(op))
    for (auto [first, argument, result] : llvm::zip_equal(loop.getFirst(), loop.getValueArguments(), loop.getWritten()))
      if (StringAttr device = fixedValues.lookup(first))
        fixedValues[argument] = fixedValues[result] = device;
  StringAttr device = getDevice(op.getResult(0).getType());
  if (isa<GetOp, CopyOp>(op)) {
    if (device)
      devices[&op] = fixedValues[op.getResult(0)] = device;
    return;
  }
  if (!op.hasTrait<SameDevice>())
    return;
  StringAttr pin = whereItCan(&op, getPin(&op));
  auto isAnywhere = [&](Value operand) { return operand.getDefiningOp() && isMadeAnywhere(operand.getDefiningOp()); };
  if (!pin && !device && llvm::all_of(op.getOperands(), isAnywhere)) {
    madeAnywhere.insert(&op);
    return;
  }
  for (Value operand : op.getOperands())
    if (!pin && !device)
      device = fixedValues.lookup(operand);
  if (pin || device)
    devices[&op] = pin ? pin : device;
  if (!pin && device)
    for (Value result : op.getResults())
      fixedValues[result] = device;
}

} // namespace sluice::passes
