// Canonicalizes ops, merges equal ops and removes dead ops.
//
// Ops define their canonical forms. For example, a product absorbs permutations and broadcasts of its operands, so that
// these are never stored.
#include "ir/Dialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"

using namespace mlir;

namespace sluice::passes {

LogicalResult canonicalize(ModuleOp module) {
  MLIRContext *context = module.getContext();
  RewritePatternSet patterns(context);
  for (RegisteredOperationName name : context->getRegisteredOperations())
    if (isa<ir::SluiceDialect>(name.getDialect()))
      name.getCanonicalizationPatterns(patterns, context);
  GreedyRewriteConfig config;
  config.enableRegionSimplification = GreedySimplifyRegionLevel::Disabled;
  return applyPatternsAndFoldGreedily(module, std::move(patterns), config);
}

LogicalResult simplify(ModuleOp module) {
  if (failed(canonicalize(module)))
    return failure();
  PassManager manager(module.getContext());
  manager.enableVerifier(false); // the phase is verified at its end
  manager.addPass(createCSEPass());
  return manager.run(module);
}

} // namespace sluice::passes
