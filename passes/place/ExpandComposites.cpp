// Replaces composite ops by their formulas.
//
//   %y = sluice.conv2d %x, %w {groups = 2}     (its device has kernels for one group only)
//     ==>  %0 = sluice.slice %x ...; %1 = sluice.slice %w ...; %2 = sluice.conv2d %0, %1 {groups = 1}
//          ...                                    %y = sluice.concat %2, %5 {axis = 1}
//
// After `placed`, an op is expanded if its device may have no kernel for it (`DeviceBackends::reasonAgainstKernel`).
// The ops of the formula stay on the op's device. In `train`, only ops that request early expansion are expanded,
// regardless of the backends. These are batch normalization with its gradient, which shares sums over the rows and
// their counts, and dropout, whose gradient draws the same numbers. Batch normalization over each replica's own rows is
// expanded after partitioning, because partitioning would add its sums over all replicas.
#include "ir/Module.h"
#include "passes/Passes.h"
#include "passes/backend/DeviceBackends.h"
#include "passes/place/InheritDevice.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

/// Replaces an op by values.
static void replace(Operation *op, ValueRange values) {
  op->replaceAllUsesWith(values);
  op->erase();
}

/// Whether an op has sums over the rows or values of the first replica.
static bool joinsRows(CompositeOp op) {
  auto flowing = dyn_cast<RowFlowOp>(op.getOperation());
  return flowing && flowing.getRowFlow() != RowFlow::Apart;
}

/// Whether rows are not sharded yet, and batch norm will normalize each share separately.
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

/// Expands `op`, which is on a device, before itself. The new ops of the formula get its device and pin.
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
    replace(op, expandInPlace(op, work)); // a formula may contain composite ops
    expanded = true;
  }
  return expanded;
}

} // namespace sluice::passes
