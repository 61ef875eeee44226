// copied -> fused, before all other passes. Queries each device's backend for support of the ops placed there.
#include "passes/Passes.h"
#include "passes/backend/DeviceBackends.h"
#include "runtime/plan/DeviceName.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

LogicalResult checkSupport(ModuleOp module, const DeviceBackends &backends) {
  llvm::StringSet<> reported; // one error per op, device and reason; a model repeats many
  module.walk([&](Operation *op) {
    StringAttr device = op->getNumResults() ? getDevice(op->getResult(0).getType()) : StringAttr();
    std::string reason = device ? backends.reasonAgainstKernel(op, device) : "";
    if (reason.empty())
      return;
    std::string text =
        ("'" + op->getName().getStringRef() + "' cannot run on " + runtime::shownDevice(device.getValue()) +
         " (backend '" + backends.of(device).name() + "'): " + reason)
            .str();
    if (reported.insert(text).second)
      op->emitError("unsupported: ") << text;
  });
  return success(reported.empty());
}

LogicalResult checkTreeSums(ModuleOp module, const DeviceBackends &backends) {
  llvm::StringSet<> reported;
  module.walk([&](CollectiveOp op) {
    if (op.getReduction() != CollectiveReduction::TreeSum)
      return;
    Backend &backend = backends.of(op.getOperation());
    const char *reason = backend.describe().no_tree_sums;
    if (reason && reported.insert(backend.name()).second)
      emitError(UnknownLoc::get(module.getContext()), "unsupported: cannot apply --deterministic to replicas on ")
          << backend.name() << ": " << reason;
  });
  return success(reported.empty());
}

} // namespace sluice::passes
