// copied -> fused, first of all. Asks each device's backend whether it can run the ops that are placed there.
#include "passes/Passes.h"
#include "passes/backend/DeviceBackends.h"
#include "runtime/plan/DeviceName.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

LogicalResult checkSupport(ModuleOp module, const DeviceBackends &backends) {
  llvm::StringSet<> reported; // an error for each op, device and reason; a model has many of some
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

} // namespace sluice::passes
