// Replaces ops that stand for a formula of others by that formula.
//
//   %y = sluice.conv2d %x, %w {groups = 2}     (its device has kernels for one group only)
//     ==>  %0 = sluice.slice %x ...; %1 = sluice.slice %w ...; %2 = sluice.conv2d %0, %1 {groups = 1}
//          ...                                    %y = sluice.concat %2, %5 {axis = 1}
//
// Behind `placed`, an op is expanded where its device may have no kernel for it
// (`DeviceBackends::reasonAgainstKernel`); the ops of the formula work where the op did. Only those that say so are
// expanded early, whatever backends have: in `train`. That is batch normalisation, which shares sums over the rows, and
// the counts that divide them, with its gradient, and dropout, which draws as its gradient does. But where each of
// several replicas normalises its own rows, its sums are not to be seen by the pass that shares rows out, which would
// add them up over all: they appear behind it.
#include "ir/Module.h"
#include "passes/Passes.h"
#include "passes/backend/DeviceBackends.h"
#include "passes/place/InheritDevice.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

/// Puts values in an op's place.
static void replace(Operation *op, ValueRange values) {
  op->replaceAllUsesWith(values);
  op->erase();
}

/// Whether an op has sums over the rows, or what is the first replica's.
static bool joinsRows(CompositeOp op) {
  auto flowing = dyn_cast<RowFlowOp>(op.getOperation());
  return flowing && flowing.getRowFlow() != RowFlow::Apart;
}

/// Whether rows are still to be shared out, and sums of batch norm are then those of each share.
static bool hidesSums(ModuleOp module) {
  ModelOp model = findModel(module);
  return sharesRows(module) && !model.getSyncBatchNorm() && !model.getBatch();
}

void expandComposites(ModuleOp module) {
  bool hides = hidesSums(module);
  module.walk([&](CompositeOp op) {
    if (!op.isExpandedEarly() || (hides && joinsRows(op)))
      return;
    OpBuilder builder(op);
    SmallVector<Value> values;
    {
      InheritDevice devices(builder, op);
      values = op.expand(builder);
    }
    replace(op, values);
  });
}

/// The ops of the formula that are new in front of `op`, which is on a device: they live there, pinned as it is.
static SmallVector<Value> expandInPlace(CompositeOp op, SmallVectorImpl<Operation *> &made) {
  OpBuilder builder(op);
  Operation *before = op->getPrevNode();
  SmallVector<Value> values;
  {
    InheritDevice devices(builder, getDevice(op->getResult(0).getType()), /*pin=*/{});
    values = op.expand(builder);
  }
  Block::iterator first = before ? std::next(before->getIterator()) : op->getBlock()->begin();
  for (Operation &part : llvm::make_range(first, op->getIterator())) {
    if (StringAttr pin = getPin(op))
      part.setAttr(kPinAttr, pin);
    made.push_back(&part);
  }
  return values;
}

bool expandMissing(ModuleOp module, const DeviceBackends &backends) {
  bool expanded = false;
  SmallVector<Operation *> work;
  module.walk([&](CompositeOp op) { work.push_back(op); });
  while (!work.empty()) {
    auto op = dyn_cast<CompositeOp>(work.pop_back_val());
    StringAttr device = op ? getDevice(op->getResult(0).getType()) : StringAttr();
    if (!device || backends.reasonAgainstKernel(op, device).empty() || !backends.reasonAgainst(op, device).empty())
      continue;
    replace(op, expandInPlace(op, work)); // a formula may hold ops that are formulas themselves
    expanded = true;
  }
  return expanded;
}

} // namespace sluice::passes
