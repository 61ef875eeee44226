// Gives every kernel its queue. One device has one queue, in which kernels run in the order of the block.
#include "passes/Passes.h"
#include "ir/Dialect.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

void scheduleKernels(ModuleOp module) {
  OpBuilder builder(module.getContext());
  module.walk([&](KernelOp kernel) { kernel->setAttr("queue", builder.getI64IntegerAttr(0)); });
}

} // namespace sluice::passes
