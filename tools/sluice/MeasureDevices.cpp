#include "tools/sluice/MeasureDevices.h"

#include "runtime/help/Arguments.h"
#include "tools/compiler/placement/costs/DescribedCosts.h"
#include "tools/sluice/MeasuredText.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <fmt/format.h>
#include <unistd.h>

using namespace sluice::compiler;
namespace json = llvm::json;

namespace sluice::tool {

void addMeasureFlags(CLI::App &command, MeasureRequest &request) {
  command
      .add_option("--devices", request.devices,
                  "Devices to measure, e.g. cpu,sim:0 (default: the first of every backend)")
      ->type_name("LIST");
  command.add_option("--model", request.models, "Also measure the kernels of this model; repeatable")
      ->type_name("MODEL.mlir")
      ->allow_extra_args(false);
  command.add_option("--sim", request.settings["sim"], "Settings of the simulator, e.g. link=12GB/s,latency=5us")
      ->type_name("SETTINGS");
  command.add_option("--threads", request.threads, "Number of host threads, at most 4096 (default: one per core)")
      ->type_name("N")
      ->check(help::wholeNumber(1, 4096));
}

static std::vector<passes::DeviceCosts> measuredCosts(const ClockCalibration &clock,
                                                      llvm::ArrayRef<runtime::BackendFile> files) {
  std::vector<passes::DeviceCosts> costs;
  for (const DeviceCalibration &measured : clock.devices) {
    ir::Target alone = llvm::cantFail(ir::Target::parse(measured.device));
    const ir::TargetDevice &device = alone.devices().back();
    costs.push_back(measuredCosts(measured, describedCosts(device, findDevice(files, device), {})));
  }
  return costs;
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
  std::vector<runtime::BackendFile> files = tryBackends();
  json::Array clocks;
  for (const ClockCalibration &clock : *measured) {
    for (const UnmeasuredKind &kind : clock.unmeasured)
      llvm::errs() << fmt::format("sluice: warning: {}: cannot measure {}: {}\n", kind.device, kind.kind, kind.reason);
    if (llvm::Error error = writeCalibration(clock))
      return error;
    std::vector<passes::DeviceCosts> costs = measuredCosts(clock, files);
    clocks.push_back(toJson(clock, costs));
    if (!talk.json && !talk.quiet)
      printMeasured(llvm::outs(), clock, costs);
  }
  if (talk.json)
    llvm::outs() << json::Value(json::Object{{"file", calibrationPath()}, {"clocks", std::move(clocks)}}) << '\n';
  else if (!talk.quiet)
    llvm::outs() << "kept in " << calibrationPath() << '\n';
  return llvm::Error::success();
}

} // namespace sluice::tool
