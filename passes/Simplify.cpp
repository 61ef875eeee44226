// Expands composite ops, merges equal ops and removes dead ones. Counts of rows ask an input, so that nothing computed is kept
// in memory for the sake of its shape.
#include "ir/Expansions.h"
#include "ir/Inference.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/InheritPlace.h"
#include "passes/Passes.h"

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

/// The smallest input that has rows; null if none has.
static BlockArgument smallestInputWithRows(ir::EntryOp entry) {
  BlockArgument smallest;
  int64_t least = 0;
  for (BlockArgument argument : entry.getBody().getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    int64_t perRow = ir::countElements(type.getShape()).known;
    if (!type.hasStaticShape() && (!smallest || perRow < least))
      smallest = argument, least = perRow;
  }
  return smallest;
}

/// All values have the same rows, so their count may be asked of any.
static void countRowsOfInputs(ir::EntryOp entry) {
  BlockArgument input = smallestInputWithRows(entry);
  if (!input)
    return;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(input.getType()).getShape();
  int64_t rowsDim = llvm::find(shape, ShapedType::kDynamic) - shape.begin();
  for (auto count : entry.getBody().front().getOps<ir::CountOp>()) {
    bool countsRows = count.getAxes().size() == 1 && cast<RankedTensorType>(count.getX().getType()).isDynamicDim(count.getAxes().front());
    if (!countsRows)
      continue;
    count.getXMutable().set(input);
    count.setAxes(rowsDim);
  }
}

LogicalResult simplify(ModuleOp module) {
  for (auto entry : module.getOps<ir::EntryOp>())
    countRowsOfInputs(entry);
  PassManager manager(module.getContext());
  manager.addPass(createCSEPass());
  return manager.run(module);
}

} // namespace sluice::passes
