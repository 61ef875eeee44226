#include "passes/kernel/CopyKernel.h"

#include "ir/Work.h"
#include "passes/analysis/ValueReaders.h"

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

/// Whether a kernel reads an operand only to compute the element that replaces it.
static bool isReadInPlaceBy(KernelOp kernel, OpOperand &use) {
  return isReadInPlace(kernel.getBody().getArgument(use.getOperandNumber()),
                       [](Operation *op) { return !isa<YieldOp>(op); });
}

/// Whether a kernel may read an operand after it has stored `next`. That is possible if it reduces `next`, or its
/// widened form, and computes another result from the operand: `next` may be stored during the reduction.
static bool isReadBehind(KernelOp kernel, OpOperand &use, OpResult next) {
  Block &body = kernel.getBody().front();
  Value early = body.getTerminator()->getOperand(next.getResultNumber());
  auto reduces = [](Operation *user) {
    return isReduction(user) || (isWidening(user) && llvm::any_of(user->getUsers(), isReduction));
  };
  if (llvm::none_of(early.getUsers(), reduces))
    return false;
  llvm::SetVector<Value> reached;
  reached.insert(body.getArgument(use.getOperandNumber()));
  for (size_t i = 0; i < reached.size(); ++i)
    for (Operation *user : reached[i].getUsers()) {
      if (isa<YieldOp>(user))
        return true;
      if (user != early.getDefiningOp())
        reached.insert(user->result_begin(), user->result_end());
    }
  return false;
}

bool canReplace(Value old, Value next, Operation *terminator) {
  Operation *maker = next.getDefiningOp();
  return llvm::all_of(old.getUses(), [&](OpOperand &use) {
    if (auto kernel = dyn_cast_or_null<KernelOp>(maker); use.getOwner() == maker)
      return kernel && isReadInPlaceBy(kernel, use) && !isReadBehind(kernel, use, cast<OpResult>(next));
    Operation *reader = terminator->getBlock()->findAncestorOpInBlock(*use.getOwner());
    return reader && reader->isBeforeInBlock(maker);
  });
}

} // namespace sluice::passes
