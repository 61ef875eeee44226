// Has the backend make every kernel, and records on it how it is launched: `stages` (symbol, tasks, rows per task),
// `workspace` in bytes, its cost and its `kind`; or `function` and `parameters` of the backend. Kernels with equal
// bodies are made once, also for several devices of one backend.
#include "mlir/IR/AsmState.h"
#include "passes/Passes.h"
#include "passes/backend/DeviceBackends.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static DictionaryAttr describe(OpBuilder &builder, const sluice_launch_info &launch, StringRef kind) {
  SmallVector<Attribute> stages;
  for (const sluice_stage_info &stage : ArrayRef(launch.stages, launch.num_stages))
    stages.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("symbol", builder.getStringAttr(stage.symbol)),
         builder.getNamedAttr("tasks", builder.getI64IntegerAttr(stage.tasks)),
         builder.getNamedAttr("rows_per_task", builder.getI64IntegerAttr(stage.rows_per_task))}));
  const sluice_cost &cost = launch.cost;
  SmallVector<NamedAttribute> fields{
      builder.getNamedAttr("stages", builder.getArrayAttr(stages)),
      builder.getNamedAttr("workspace", builder.getI64IntegerAttr(launch.workspace_bytes)),
      builder.getNamedAttr("flops", builder.getI64IntegerAttr(cost.flops)),
      builder.getNamedAttr("flops_per_row", builder.getI64IntegerAttr(cost.flops_per_row)),
      builder.getNamedAttr("bytes", builder.getI64IntegerAttr(cost.bytes)),
      builder.getNamedAttr("bytes_per_row", builder.getI64IntegerAttr(cost.bytes_per_row)),
      builder.getNamedAttr("lanes", builder.getF64FloatAttr(cost.lanes)),
      builder.getNamedAttr("kind", builder.getStringAttr(kind))};
  if (launch.function) {
    StringRef parameters(static_cast<const char *>(launch.parameters), launch.parameters_bytes);
    fields.push_back(builder.getNamedAttr("function", builder.getStringAttr(launch.function)));
    fields.push_back(
        builder.getNamedAttr("parameters", builder.getStringAttr(llvm::toHex(parameters, /*LowerCase=*/true))));
  }
  return builder.getDictionaryAttr(fields);
}

static std::string kindOf(KernelOp kernel, Backend &backend) {
  Block &body = kernel.getBody().front();
  SmallVector<Operation *> ops(llvm::make_pointer_range(body.without_terminator()));
  return backend.cost(ops, body.getArguments(), body.getTerminator()->getOperands()).kind;
}

/// What a kernel computes, as text that does not say on which of a backend's devices, or under which name.
static std::string keyOf(KernelOp kernel, StringRef device, StringRef backend) {
  std::string body, key = backend.str() + " ";
  llvm::raw_string_ostream os(body);
  OpPrintingFlags flags;
  flags.useLocalScope().printGenericOpForm();
  for (Type type : kernel.getOperandTypes())
    os << type << " ";
  AsmState state(kernel, flags); // numbers values from the kernel's first argument on
  for (Operation &op : kernel.getBody().front()) {
    op.print(os, state);
    os << "\n";
  }
  std::string quoted = ("\"" + device + "\"").str();
  for (StringRef rest = os.str(); !rest.empty();) {
    auto [before, after] = rest.split(quoted);
    key += before;
    rest = after;
  }
  return key;
}

LogicalResult prepareKernels(ModuleOp module, const DeviceBackends &backends) {
  OpBuilder builder(module.getContext());
  llvm::StringMap<DictionaryAttr> made;
  WalkResult result = module.walk([&](KernelOp kernel) -> WalkResult {
    Backend &backend = backends.of(kernel);
    DictionaryAttr &known = made[keyOf(kernel, getDevice(kernel->getResult(0).getType()), backend.name())];
    if (!known) {
      FailureOr<sluice_launch_info> launch = backend.prepare(kernel);
      if (failed(launch))
        return WalkResult::interrupt();
      known = describe(builder, *launch, kindOf(kernel, backend));
    }
    kernel->setAttr("launch", known);
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

} // namespace sluice::passes
