// Has the backend make every kernel, and records on it how it is launched: `stages` (symbol, tasks, rows per task), `workspace`
// in bytes and `cost`. Kernels with equal bodies are made once.
#include "passes/Backend.h"
#include "passes/Passes.h"
#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static DictionaryAttr describe(OpBuilder &builder, const sluice_launch_info &launch) {
  SmallVector<Attribute> stages;
  for (const sluice_stage_info &stage : ArrayRef(launch.stages, launch.num_stages))
    stages.push_back(builder.getDictionaryAttr({builder.getNamedAttr("symbol", builder.getStringAttr(stage.symbol)),
                                                builder.getNamedAttr("tasks", builder.getI64IntegerAttr(stage.tasks)),
                                                builder.getNamedAttr("rows_per_task", builder.getI64IntegerAttr(stage.rows_per_task))}));
  const sluice_cost &cost = launch.cost;
  return builder.getDictionaryAttr({builder.getNamedAttr("stages", builder.getArrayAttr(stages)),
                                    builder.getNamedAttr("workspace", builder.getI64IntegerAttr(launch.workspace_bytes)),
                                    builder.getNamedAttr("flops", builder.getI64IntegerAttr(cost.flops)),
                                    builder.getNamedAttr("flops_per_row", builder.getI64IntegerAttr(cost.flops_per_row)),
                                    builder.getNamedAttr("bytes", builder.getI64IntegerAttr(cost.bytes)),
                                    builder.getNamedAttr("bytes_per_row", builder.getI64IntegerAttr(cost.bytes_per_row)),
                                    builder.getNamedAttr("lanes", builder.getF64FloatAttr(cost.lanes))});
}

static bool areEquivalent(KernelOp a, KernelOp b) {
  return TypeRange(a.getOperandTypes()) == TypeRange(b.getOperandTypes()) && TypeRange(a.getResultTypes()) == TypeRange(b.getResultTypes()) &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(), OperationEquivalence::IgnoreLocations);
}

LogicalResult prepareKernels(ModuleOp module, Backend &backend) {
  OpBuilder builder(module.getContext());
  SmallVector<KernelOp> made;
  WalkResult result = module.walk([&](KernelOp kernel) -> WalkResult {
    for (KernelOp other : made)
      if (areEquivalent(kernel, other)) {
        kernel->setAttr("launch", other->getAttr("launch"));
        return WalkResult::advance();
      }
    FailureOr<sluice_launch_info> launch = backend.prepare(kernel);
    if (failed(launch))
      return WalkResult::interrupt();
    kernel->setAttr("launch", describe(builder, *launch));
    made.push_back(kernel);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

} // namespace sluice::passes
