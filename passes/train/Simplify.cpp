// Merges equal ops and removes dead ones.
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"

using namespace mlir;

namespace sluice::passes {

LogicalResult simplify(ModuleOp module) {
  PassManager manager(module.getContext());
  manager.addPass(createCSEPass());
  return manager.run(module);
}

} // namespace sluice::passes
