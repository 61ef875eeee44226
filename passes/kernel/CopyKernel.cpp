#include "passes/kernel/CopyKernel.h"

#include "passes/analysis/FusionGroups.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

std::string prefixOf(Type type) {
  StringAttr device = getDevice(type);
  return !device || device == kHostDevice ? "" : device.str() + "_";
}

Value copyInKernel(Value value, Operation *op, StringRef name) {
  OpBuilder builder(op);
  OperationState state(op->getLoc(), KernelOp::getOperationName());
  state.addAttribute("name", builder.getStringAttr(prefixOf(value.getType()) + name));
  state.addOperands(value);
  state.addTypes(value.getType());
  Block *block = new Block;
  state.addRegion()->push_back(block);
  OpBuilder inner(op->getContext());
  inner.setInsertionPointToEnd(block);
  Value argument = block->addArgument(value.getType(), op->getLoc());
  inner.create<YieldOp>(op->getLoc(),
                        ValueRange(Value(inner.create<RelayoutOp>(op->getLoc(), value.getType(), argument))));
  return builder.create(state)->getResult(0);
}

/// Whether a kernel reads an operand only where it writes the element that takes its place.
static bool isReadInPlaceBy(KernelOp kernel, OpOperand &use) {
  return isReadInPlace(kernel.getBody().getArgument(use.getOperandNumber()),
                       [](Operation *op) { return !isa<YieldOp>(op); });
}

bool canReplace(Value old, Value next, Operation *terminator) {
  Operation *maker = next.getDefiningOp();
  return llvm::all_of(old.getUses(), [&](OpOperand &use) {
    if (use.getOwner() == maker)
      return isa<KernelOp>(maker) && isReadInPlaceBy(cast<KernelOp>(maker), use);
    Operation *reader = terminator->getBlock()->findAncestorOpInBlock(*use.getOwner());
    return reader && reader->isBeforeInBlock(maker);
  });
}

} // namespace sluice::passes
