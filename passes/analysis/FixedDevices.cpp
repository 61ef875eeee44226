#include "passes/analysis/FixedDevices.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

FixedDevices::FixedDevices(EntryOp entry) {
  for (BlockArgument argument : entry.getBody().getArguments())
    if (StringAttr device = getDevice(argument.getType()))
      fixedValues[argument] = device;
  for (Operation &op : entry.getBody().front())
    visit(op);
}

void FixedDevices::visit(Operation &op) {
  if (op.getNumResults() == 0)
    return;
  StringAttr device = getDevice(op.getResult(0).getType());
  if (isa<GetOp, CopyOp>(op)) {
    if (device)
      devices[&op] = fixedValues[op.getResult(0)] = device;
    return;
  }
  if (!op.hasTrait<SameDevice>())
    return;
  StringAttr pin = getPin(&op);
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
