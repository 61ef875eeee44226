// Expands composite ops, merges equal ops and removes dead ones.
#include "ir/ops/Expansions.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "passes/place/InheritPlace.h"

using namespace mlir;

namespace sluice::passes {

void expandComposites(ModuleOp module) {
  module.walk([](ir::BatchNormOp op) {
    OpBuilder builder(op);
    InheritPlace place(builder, op);
    op->replaceAllUsesWith(ir::expandBatchNorm(builder, op));
    op->erase();
  });
}

LogicalResult simplify(ModuleOp module) {
  PassManager manager(module.getContext());
  manager.addPass(createCSEPass());
  return manager.run(module);
}

} // namespace sluice::passes
