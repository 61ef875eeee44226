#include "tools/sluice/MeasureDevices.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <fmt/format.h>
#include <unistd.h>

using namespace sluice::compiler;
using sluice::passes::KernelRates;
using sluice::passes::KernelSample;
namespace json = llvm::json;

namespace sluice::tool {

void addMeasureFlags(CLI::App &command, MeasureRequest &request) {
  command
      .add_option("--devices", request.devices,
                  "What to measure, as cpu,sim:0; the first of every backend unless given")
      ->type_name("LIST");
  command.add_option("--model", request.models, "Time this model's kernels, too; may be repeated")
      ->type_name("MODEL.mlir")
      ->allow_extra_args(false);
  command.add_option("--sim", request.settings["sim"], "Settings of the simulator, as link=12GB/s,latency=5us")
      ->type_name("SETTINGS");
  command.add_option("--threads", request.threads, "Threads of the host; all unless given")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
}

/// The largest factor by which the rates miss a sample.
static double worstMiss(const KernelRates &rates) {
  double worst = 1;
  for (const KernelSample &sample : rates.samples) {
    double ratio = rates.seconds(sample.flops, sample.bytes) / sample.seconds;
    worst = std::max({worst, ratio, 1 / ratio});
  }
  return worst;
}

static void print(llvm::raw_ostream &out, const ClockCalibration &clock) {
  for (const DeviceCalibration &device : clock.devices) {
    passes::DeviceCosts costs = device.costs();
    out << fmt::format("{} by {} clock ({}); a launch takes {:.2f} us\n", device.device,
                       clock.clock == "cpu" ? "the wall" : clock.clock + "'s", clock.machine,
                       costs.any.launchSeconds * 1e6);
    out << fmt::format("  {:<28} {:>8} {:>12} {:>10} {:>14}\n", "kind", "kernels", "GFLOP/s", "GB/s", "worst estimate");
    for (const auto &[kind, samples] : device.kinds) {
      const KernelRates &rates = costs.kinds[kind];
      auto rate = [](double value) { return value < 1e20 ? fmt::format("{:.1f}", value / 1e9) : std::string("-"); };
      out << fmt::format("  {:<28} {:>8} {:>12} {:>10} {:>13.2f}x\n", kind, samples.size(), rate(rates.flopsPerSecond),
                         rate(rates.bytesPerSecond), worstMiss(rates));
    }
  }
  for (const LinkCalibration &link : clock.links)
    out << fmt::format("{} to {}: {:.2f} GB/s, {:.2f} us\n", link.from, link.to, link.bytesPerSecond / 1e9,
                       link.latency * 1e6);
}

llvm::Error measureAndKeep(MeasureRequest request, const Talk &talk) {
  if (llvm::Error error = checkCalibrationPath())
    return error;
  bool isTerminal = isatty(STDERR_FILENO) != 0;
  if (!talk.quiet)
    request.progress = [&](const std::string &what) {
      llvm::errs() << (isTerminal ? "\r\033[K" : "") << "measuring " << what << (isTerminal ? "" : "\n");
    };
  auto measured = measureDevices(request);
  if (isTerminal && !talk.quiet)
    llvm::errs() << "\r\033[K";
  if (!measured)
    return measured.takeError();
  json::Array clocks;
  for (const ClockCalibration &clock : *measured) {
    for (const UnmeasuredKind &kind : clock.unmeasured)
      llvm::errs() << fmt::format("sluice: {}: {} could not be measured: {}\n", kind.device, kind.kind, kind.reason);
    if (llvm::Error error = writeCalibration(clock))
      return error;
    clocks.push_back(toJson(clock));
    if (!talk.json && !talk.quiet)
      print(llvm::outs(), clock);
  }
  if (talk.json)
    llvm::outs() << json::Value(json::Object{{"file", calibrationPath()}, {"clocks", std::move(clocks)}}) << '\n';
  else if (!talk.quiet)
    llvm::outs() << "kept in " << calibrationPath() << '\n';
  return llvm::Error::success();
}

} // namespace sluice::tool
