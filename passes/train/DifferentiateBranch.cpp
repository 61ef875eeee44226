// The gradient of a branch is also a branch.
//
//   %y = sluice.if %p {%e = sluice.exp %x; sluice.yield %e} else {sluice.yield %x}
//     ==>  %dX = sluice.if %p {%e = sluice.exp %x; %d = sluice.mul %dY, %e; sluice.yield %d} else {sluice.yield %dY}
//
// Its results are the gradients of the outside values that either region reads; for a value that one region does not
// read, that region yields zeros. The region's ops are cloned as far as its gradients need them. So only the taken
// branch is computed, and nothing is stored for the other.
#include "ir/build/Node.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/place/InheritDevice.h"
#include "passes/train/Gradients.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static Value zerosOf(OpBuilder &builder, Value value) {
  InheritDevice devices(builder, getDevice(value.getType()), pinOf(value));
  return Node(builder, value.getLoc(), value).like(0.0);
}

static void eraseUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// The gradients of `wrt` in one branch.
static LogicalResult fillBranch(Block &block, Location asked, YieldOp yield, ValueRange wrt, ArrayRef<Value> dResults,
                                ActiveValues active) {
  OpBuilder inner(yield.getContext());
  inner.setInsertionPointToEnd(&block);
  IRMapping mapping;
  SmallVector<Operation *> forward;
  for (Operation &op : yield->getBlock()->without_terminator())
    forward.push_back(inner.clone(op, mapping));
  addActive(block, active);
  Gradients here(inner, asked);
  for (auto [value, gradient] : llvm::zip_equal(yield.getValues(), dResults))
    if (Value copy = mapping.lookupOrDefault(value); gradient && active.contains(copy))
      here.add(copy, gradient);
  for (Operation *op : llvm::reverse(forward))
    if (failed(here.propagate(op, active)))
      return failure();
  SmallVector<Value> gradients;
  for (Value value : wrt) {
    Value gradient = here.lookup(value);
    gradients.push_back(gradient ? gradient : zerosOf(inner, value));
  }
  inner.create<YieldOp>(yield.getLoc(), gradients);
  eraseUnused(block);
  return success();
}

LogicalResult differentiateBranch(IfOp op, Gradients &gradients, const ActiveValues &active, OpBuilder &builder) {
  SmallVector<Value> dResults =
      llvm::map_to_vector(op.getResults(), [&](Value result) { return gradients.lookup(result); });
  llvm::SetVector<Value> read;
  getUsedValuesDefinedAbove(op->getRegions(), read);
  SmallVector<Value> wrt;
  llvm::copy_if(read, std::back_inserter(wrt), [&](Value value) { return active.contains(value); });
  if (wrt.empty() || llvm::none_of(dResults, [](Value gradient) { return bool(gradient); }))
    return success();
  NestedBlock then(builder, op.getLoc()), otherwise(builder, op.getLoc());
  if (failed(fillBranch(*then.get(), gradients.getAsked(), op.getYield(0), wrt, dResults, active)) ||
      failed(fillBranch(*otherwise.get(), gradients.getAsked(), op.getYield(1), wrt, dResults, active)))
    return failure();
  auto backward = IfOp::create(builder, op.getLoc(), op.getCondition(), then.take(), otherwise.take());
  for (auto [value, gradient] : llvm::zip_equal(wrt, backward.getResults()))
    gradients.add(value, gradient);
  return success();
}

} // namespace sluice::passes
