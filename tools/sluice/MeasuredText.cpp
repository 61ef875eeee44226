#include "tools/sluice/MeasuredText.h"

#include "llvm/ADT/STLExtras.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace sluice::compiler;
using sluice::passes::DeviceCosts;
using sluice::passes::KernelRates;
using sluice::passes::KernelSample;
namespace json = llvm::json;

namespace sluice::tool {

/// The largest factor by which the rates deviate from a sample.
static double worstMiss(const KernelRates &rates) {
  double worst = 1;
  for (const KernelSample &sample : rates.samples) {
    double ratio = rates.seconds(sample.flops, sample.bytes) / sample.seconds;
    worst = std::max({worst, ratio, 1 / ratio});
  }
  return worst;
}

static std::string rate(double value) { return value < 1e20 ? fmt::format("{:.1f}", value / 1e9) : std::string("-"); }

/// Kinds without measurements that have an estimate from another kind with the same ending.
static std::map<std::string, std::string> estimatedKinds(const DeviceCosts &costs) {
  std::map<std::string, std::string> kinds;
  for (const auto &[kind, like] : costs.estimated)
    if (!llvm::StringRef(kind).starts_with(like))
      kinds.emplace(kind, like);
  return kinds;
}

static void print(llvm::raw_ostream &out, const DeviceCalibration &device, const DeviceCosts &costs) {
  for (const auto &[kind, samples] : device.kinds) {
    const KernelRates &rates = costs.ratesOf(kind);
    out << fmt::format("  {:<28} {:>8} {:>12} {:>10} {:>13.2f}x\n", kind, samples.size(), rate(rates.flopsPerSecond),
                       rate(rates.bytesPerSecond), worstMiss(rates));
  }
  for (const auto &[kind, like] : estimatedKinds(costs)) {
    const KernelRates &rates = costs.ratesOf(kind);
    out << fmt::format("  {:<28} {:>8} {:>12} {:>10}  as {}, by the published peaks of {}\n", kind, "none",
                       rate(rates.flopsPerSecond), rate(rates.bytesPerSecond), like, costs.architecture);
  }
  std::vector<std::string> endings;
  for (llvm::StringRef ending : costs.endings.keys())
    endings.push_back(ending.str());
  llvm::sort(endings);
  if (!endings.empty())
    out << fmt::format("  other kinds that end in {} were not measured: they go by the published peaks of {}\n",
                       fmt::join(endings, ", "), costs.architecture);
}

void printMeasured(llvm::raw_ostream &out, const ClockCalibration &clock, llvm::ArrayRef<DeviceCosts> costs) {
  for (auto [device, its] : llvm::zip_equal(clock.devices, costs)) {
    out << fmt::format("{} by {} clock ({}); a launch takes {:.2f} us\n", device.device,
                       clock.clock == "cpu" ? "the wall" : clock.clock + "'s", clock.machine,
                       its.any.launchSeconds * 1e6);
    out << fmt::format("  {:<28} {:>8} {:>12} {:>10} {:>14}\n", "kind", "kernels", "GFLOP/s", "GB/s", "worst estimate");
    print(out, device, its);
  }
  for (const LinkCalibration &link : clock.links)
    out << fmt::format("{} to {}: {:.2f} GB/s, {:.2f} us\n", link.from, link.to, link.bytesPerSecond / 1e9,
                       link.latency * 1e6);
}

json::Value toJson(const ClockCalibration &clock, llvm::ArrayRef<DeviceCosts> costs) {
  json::Value value = compiler::toJson(clock);
  for (auto [device, its] : llvm::zip_equal(*value.getAsObject()->getArray("devices"), costs)) {
    json::Object estimated;
    for (const auto &[kind, like] : estimatedKinds(its)) {
      const KernelRates &rates = its.ratesOf(kind);
      estimated[kind] = json::Object{
          {"like", like}, {"flops_per_second", rates.flopsPerSecond}, {"bytes_per_second", rates.bytesPerSecond}};
    }
    (*device.getAsObject())["estimated"] = std::move(estimated);
  }
  return value;
}

} // namespace sluice::tool
