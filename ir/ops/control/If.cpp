// Branches: verification.
//
//   %y = sluice.if %p : tensor<i1> -> tensor<?x4xf32> {
//     %0 = sluice.exp %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
//     sluice.yield %0 : tensor<?x4xf32>
//   } else {
//     sluice.yield %x : tensor<?x4xf32>
//   }
#include "ir/Work.h"
#include "ir/ops/Inference.h"

using namespace mlir;

namespace sluice::ir {

YieldOp IfOp::getYield(unsigned branch) { return cast<YieldOp>((*this)->getRegion(branch).front().getTerminator()); }

IfOp IfOp::create(OpBuilder &builder, Location loc, Value condition, Block *then, Block *otherwise) {
  OperationState state(loc, getOperationName());
  state.addOperands(condition);
  state.addTypes(then->getTerminator()->getOperandTypes());
  state.addRegion()->push_back(then);
  state.addRegion()->push_back(otherwise);
  return cast<IfOp>(builder.create(state));
}

static LogicalResult verifyBranch(IfOp op, Block &branch) {
  auto yield = branch.empty() ? YieldOp() : dyn_cast<YieldOp>(branch.back());
  if (!yield || branch.getNumArguments() != 0)
    return op.emitOpError("has a branch with arguments, or one that does not end in sluice.yield");
  if (TypeRange(yield.getOperandTypes()) != TypeRange(op->getResultTypes()))
    return yield.emitOpError("gives values of other types than the results of the branches");
  for (Operation &inner : branch)
    if (!isCompute(&inner) && !isa<ScanOp, IfOp, YieldOp>(inner))
      return inner.emitOpError("cannot stand in a branch, which is of values alone");
  return success();
}

LogicalResult IfOp::verify() {
  if (!shapeOf(getCondition()).empty())
    return emitOpError("needs a scalar to decide by, not ") << printShape(shapeOf(getCondition()));
  if (getResults().empty())
    return emitOpError("gives nothing");
  return failure(failed(verifyBranch(*this, getThen().front())) || failed(verifyBranch(*this, getOtherwise().front())));
}

} // namespace sluice::ir
