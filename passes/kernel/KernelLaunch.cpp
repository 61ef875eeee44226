#include "passes/kernel/KernelLaunch.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

KernelLaunch::KernelLaunch(const sluice_launch_info &info, std::string kind)
    : kind(std::move(kind)), cost(info.cost), workspaceBytes(info.workspace_bytes) {
  if (info.function) {
    function = info.function;
    parameters.assign(static_cast<const char *>(info.parameters), info.parameters_bytes);
    return;
  }
  for (size_t number = 0; number < info.num_stages; ++number) {
    const sluice_stage_info &stage = *sluice_launch_info_stage_at(&info, number);
    stages.push_back({stage.symbol, stage.tasks, stage.rows_per_task});
  }
}

void KernelLaunch::describe(FunctionOp op) const {
  Builder builder(op.getContext());
  op.setCostAttr(CostAttr::get(builder.getContext(), kind, cost.flops, cost.flops_per_row, cost.bytes,
                               cost.bytes_per_row, builder.getF64FloatAttr(cost.lanes)));
  op.setWorkspace(workspaceBytes);
  if (function) {
    op.setCode(StringRef(*function));
    op.setParameters(StringRef(llvm::toHex(parameters, /*LowerCase=*/true)));
    return;
  }
  SmallVector<Attribute> list;
  for (const Stage &stage : stages)
    list.push_back(
        StageAttr::get(builder.getContext(), builder.getStringAttr(stage.symbol), stage.tasks, stage.rowsPerTask));
  op.setStagesAttr(builder.getArrayAttr(list));
}

} // namespace sluice::passes
