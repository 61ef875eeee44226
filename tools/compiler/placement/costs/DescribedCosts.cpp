#include "tools/compiler/placement/costs/DescribedCosts.h"

using sluice::runtime::BackendDevice;

namespace sluice::compiler {

/// Published peaks of the architectures that the device's code is compiled for. Empty if the backend refuses, which the
/// compilation reports.
static std::vector<passes::PublishedPeak> peaksFor(const ir::TargetDevice &device, const CompileOptions &options) {
  auto backend = findBackend(device.backend);
  if (!backend)
    return llvm::consumeError(backend.takeError()), std::vector<passes::PublishedPeak>();
  auto described = describeTarget(**backend, options);
  if (!described)
    return llvm::consumeError(described.takeError()), std::vector<passes::PublishedPeak>();
  return std::move(described->peaks);
}

/// Of the device's own architecture if it is known and listed; else of the slowest.
static void takePublished(llvm::ArrayRef<passes::PublishedPeak> peaks, const BackendDevice *known,
                          passes::DeviceCosts &costs) {
  const passes::PublishedPeak *chosen = nullptr;
  auto isOfDevice = [&](const passes::PublishedPeak &peak) { return known && isOf(peak, *known); };
  for (const passes::PublishedPeak &peak : peaks)
    if (peak.kindEnding.empty() &&
        (!chosen || isOfDevice(peak) || (peak.flops < chosen->flops && !isOfDevice(*chosen))))
      chosen = &peak;
  if (!chosen)
    return;
  costs.source = passes::CostSource::Published;
  costs.architecture = chosen->architecture;
  for (const passes::PublishedPeak &peak : peaks)
    if (peak.architecture == chosen->architecture) {
      passes::KernelRates &rates = peak.kindEnding.empty() ? costs.any : costs.endings[peak.kindEnding];
      rates.flopsPerSecond = peak.flops;
      rates.bytesPerSecond = peak.memoryBandwidth;
    }
}

/// A device's description takes precedence over published figures. Faster kinds keep their published ratio.
static void takeDescribed(const BackendDevice &known, passes::DeviceCosts &costs) {
  if (known.peakFlops > 0) {
    for (auto &ending : costs.endings)
      ending.second.flopsPerSecond *= known.peakFlops / costs.any.flopsPerSecond;
    costs.any.flopsPerSecond = known.peakFlops;
    costs.source = passes::CostSource::Description;
  }
  if (known.memoryBandwidth > 0) {
    costs.any.bytesPerSecond = known.memoryBandwidth;
    for (auto &ending : costs.endings)
      ending.second.bytesPerSecond = known.memoryBandwidth;
  }
}

passes::DeviceCosts describedCosts(const ir::TargetDevice &device, const BackendDevice *known,
                                   const CompileOptions &options) {
  passes::DeviceCosts costs;
  takePublished(peaksFor(device, options), known, costs);
  if (known)
    takeDescribed(*known, costs);
  return costs;
}

passes::DeviceCosts measuredCosts(const DeviceCalibration &measured, const passes::DeviceCosts &described) {
  passes::DeviceCosts costs = measured.costs();
  costs.estimateUnmeasured(described);
  return costs;
}

} // namespace sluice::compiler
