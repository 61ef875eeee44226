// copied -> fused, first of all. Asks each device's backend whether it can run the ops that are placed there.
#include "passes/DeviceBackends.h"
#include "passes/Passes.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

LogicalResult checkSupport(ModuleOp module, const DeviceBackends &backends) {
  llvm::StringSet<> reported; // an error for each op, device and reason; a model has many of some
  module.walk([&](Operation *op) {
    bool crosses = isa<CopyOp>(op) && cast<CopyOp>(op).isCrossing();
    if (!isa<ElementwiseOp, ElementOp, ContractionOp>(op) || crosses)
      return;
    Backend &backend = backends.of(op);
    std::string reason = backend.reasonAgainst(op);
    if (reason.empty())
      return;
    std::string text =
        ("'" + op->getName().getStringRef() + "' cannot run on " + getDevice(op->getResult(0).getType()).getValue() +
         " (backend '" + backend.name() + "'): " + reason)
            .str();
    if (reported.insert(text).second)
      op->emitError("unsupported: ") << text;
  });
  return success(reported.empty());
}

} // namespace sluice::passes
