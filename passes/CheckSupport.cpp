// copied -> fused, first of all. Asks each device's backend whether it can run the ops that are placed there.
#include "passes/DeviceBackends.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

LogicalResult checkSupport(ModuleOp module, const DeviceBackends &backends) {
  bool failing = false;
  module.walk([&](Operation *op) {
    bool crosses = isa<CopyOp>(op) && cast<CopyOp>(op).isCrossing();
    if (!isa<ElementwiseOp, ElementOp, ContractionOp>(op) || crosses)
      return;
    Backend &backend = backends.of(op);
    std::string reason = backend.reasonAgainst(op);
    if (reason.empty())
      return;
    failing = true;
    op->emitError("unsupported: ") << "'" << op->getName() << "' cannot run on "
                                   << getDevice(op->getResult(0).getType()).getValue() << " (backend '"
                                   << backend.name() << "'): " << reason;
  });
  return failure(failing);
}

} // namespace sluice::passes
