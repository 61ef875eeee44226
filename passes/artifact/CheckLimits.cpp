#include "passes/artifact/CheckLimits.h"

#include "passes/artifact/LowerKernels.h"
#include "runtime/plan/DeviceName.h"

using namespace mlir;

namespace sluice::passes {

LogicalResult checkLimits(Compilation &c) {
  const ir::Target &target = c.backends->target();
  runtime::Plan plan = planOf(c);
  int64_t replicas = std::max<int64_t>(target.replicas(), 1);
  for (const auto &[name, limit] : c.inputs.memoryLimits)
    for (auto [number, device] : llvm::enumerate(target.devices()))
      for (int64_t replica = 0; replica < replicas; ++replica) {
        bool isHost = number == 0;
        int64_t needed = plan.peakBytes(number) * (isHost ? replicas : 1); // the host has all replicas
        if (device.spelling(replica) == name && needed > limit)
          return emitError(UnknownLoc::get(c.module.getContext()), "out of memory: cannot fit the model into ")
                 << runtime::shownDevice(device.name, name) << ": its planned peak memory is " << needed
                 << " bytes, and --devices allows " << limit
                 << "; use fewer rows (--batch), more microbatches (--accumulate), or more devices and --placement "
                    "auto";
      }
  return success();
}

} // namespace sluice::passes
