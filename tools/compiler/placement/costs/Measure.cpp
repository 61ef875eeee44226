// Every model is placed on every device as a whole, and each of its kernels is timed alone.
#include "tools/compiler/placement/costs/Measure.h"

#include "frontend/graph/GraphImpl.h"
#include "ir/Module.h"
#include "ir/text/DiagnosticText.h"
#include "ir/text/ParseGuard.h"
#include "runtime/instance/ActionTimes.h"
#include "runtime/instance/Initialise.h"
#include "tools/compiler/Backends.h"
#include "tools/compiler/Compiler.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/LoadedModel.h"
#include "tools/compiler/placement/costs/CalibrationModels.h"
#include "tools/compiler/placement/costs/MeasureLinks.h"
#include <cmath>
#include <fmt/format.h>

using namespace mlir;
using sluice::passes::KernelSample;
using sluice::runtime::BackendFile;

namespace sluice::compiler {

namespace {

/// The devices timed by one clock.
struct Clock {
  std::string name;
  std::vector<ir::TargetDevice> devices;
};

class Measuring {
public:
  explicit Measuring(const MeasureRequest &request) : request(request), files(tryBackends()) {}

  llvm::Expected<std::vector<ClockCalibration>> run() {
    auto devices = listDevices();
    if (!devices)
      return devices.takeError();
    if (llvm::Error error = loadModels())
      return std::move(error);
    std::vector<ClockCalibration> result;
    for (const Clock &clock : clocksOf(*devices)) {
      if (!request.clock.empty() && clock.name != request.clock)
        continue;
      auto measured = measure(clock);
      if (!measured)
        return measured.takeError();
      result.push_back(std::move(*measured));
    }
    return result;
  }

private:
  void say(const std::string &what) const {
    if (request.progress)
      request.progress(what);
  }

  llvm::Expected<ir::Target> listDevices() const {
    std::string list = request.devices.empty() ? "cpu" : request.devices;
    if (request.devices.empty())
      for (const BackendFile &file : files)
        if (file.accepted() && file.hasRun && !file.devices.empty())
          list += "," + file.name + ":0";
    auto target = ir::Target::parse(list);
    if (!target)
      return withCode(ExitCode::Usage, target.takeError());
    return std::move(*target);
  }

  llvm::Error loadModels() {
    for (const Graph &graph : graphs)
      if (!request.knowsOnlyThem)
        models.push_back(moduleOf(graph).clone());
    for (const std::string &path : request.models) {
      auto module = readModel(path, context);
      if (!module)
        return module.takeError();
      models.push_back(std::move(*module));
    }
    return llvm::Error::success();
  }

  /// A backend that runs the host's work has its own clock for itself and the host; all other devices use the wall
  /// clock.
  std::vector<Clock> clocksOf(const ir::Target &target) const {
    std::vector<Clock> clocks{{ir::kHostDevice.str(), {}}};
    for (const ir::TargetDevice &device : target.devices()) {
      ir::Target alone = llvm::cantFail(ir::Target::parse(device.spelling()));
      std::string name = clockOf(alone, files);
      auto known = llvm::find_if(clocks, [&](const Clock &clock) { return clock.name == name; });
      if (known == clocks.end())
        known = clocks.insert(clocks.end(), {name, {target.devices().front()}});
      known->devices.push_back(device);
    }
    return clocks;
  }

  llvm::Expected<ClockCalibration> measure(const Clock &clock) {
    ClockCalibration result;
    result.clock = clock.name;
    result.machine = machineName();
    for (const ir::TargetDevice &device : clock.devices) {
      DeviceCalibration &measured = result.devices.emplace_back();
      measured.device = device.spelling();
      std::string settings = settingsFor(device);
      for (OwningOpRef<ModuleOp> &model : models) {
        if (llvm::Error error = timeModel(*model, clock, device, {settings, {}}, measured))
          return std::move(error);
        if (settings.empty())
          continue;
        // Products of two-byte floats have separate kinds if there are published peaks of them.
        if (llvm::Error error = timeModel(*model, clock, device, {settings, DType::bf16}, measured))
          return std::move(error);
      }
    }
    noteUnmeasured(result);
    llvm::erase_if(result.devices, [](const DeviceCalibration &device) { return device.kinds.empty(); });
    for (const ir::TargetDevice &from : clock.devices)
      for (const ir::TargetDevice &to : clock.devices)
        if (from.spelling() != to.spelling()) {
          say(fmt::format("link {} to {}", from.spelling(), to.spelling()));
          auto link = measureLink(from, to, files, request);
          if (!link)
            return link.takeError();
          result.links.push_back(*link);
        }
    return result;
  }

  /// Records kinds that one device was timed with, or ran without a time, and another was not timed with.
  void noteUnmeasured(ClockCalibration &clock) {
    std::map<std::string, std::string> kinds = timedKinds;
    for (const auto &[which, reason] : refusals)
      if (!which.second.empty())
        kinds.emplace(which.second, which.first);
    for (const DeviceCalibration &device : clock.devices)
      for (const auto &[kind, samples] : device.kinds)
        timedKinds[kind] = kinds[kind] = device.device;
    for (const DeviceCalibration &device : clock.devices)
      for (const auto &[kind, timedOn] : kinds)
        if (!device.kinds.contains(kind)) {
          auto told = refusals.find({device.device, kind});
          std::string why = told != refusals.end() ? told->second : refusals[{device.device, ""}];
          clock.unmeasured.push_back(
              {device.device, kind, why.empty() ? "it ran no such kernel, as " + timedOn + " did" : why});
        }
  }

  /// The target in which this clock times the device's work.
  std::string targetFor(const Clock &clock, const ir::TargetDevice &device) const {
    if (device.name != ir::kHostDevice)
      return "cpu," + device.spelling();
    return clock.name == ir::kHostDevice ? "cpu" : "cpu," + clock.devices[1].spelling();
  }

  /// Settings that compile for the device's own architecture alone; empty if its backend has no choice.
  std::string settingsFor(const ir::TargetDevice &device) const {
    auto backend = findBackend(device.backend);
    auto target = backend ? describeTarget(**backend) : backend.takeError();
    if (!target)
      return llvm::consumeError(target.takeError()), "";
    const runtime::BackendDevice *known = findDevice(files, device);
    for (const passes::PublishedPeak &peak : target->peaks)
      if (known && isOf(peak, *known))
        return "arch=" + peak.architecture;
    return "";
  }

  /// How a model is compiled: the settings of the device's backend, and the precision (none: as in the model).
  struct Manner {
    std::string settings;
    std::optional<DType> precision;
  };

  llvm::Error timeModel(ModuleOp model, const Clock &clock, const ir::TargetDevice &device, const Manner &manner,
                        DeviceCalibration &measured) {
    say(fmt::format("{} by {} clock: {}{}", device.spelling(),
                    clock.name == ir::kHostDevice ? "the wall" : clock.name + "'s", ir::getModelName(model).str(),
                    !manner.precision ? "" : std::string(" in ") + to_string(*manner.precision)));
    OwningOpRef<ModuleOp> module(model.clone());
    CompileOptions options;
    options.devices = targetFor(clock, device);
    options.copies = "insert";
    options.placement = "auto";
    options.precision = manner.precision;
    if (!manner.settings.empty())
      options.backends[device.backend] = manner.settings;
    CompileTask task;
    task.prefer = device.name == ir::kHostDevice ? ir::kHostDevice.str() : ir::acceleratorName(0);
    auto compiled = compileModule(*module, options, task);
    if (!compiled) { // devices may not support every model, and a dump may already have a precision
      Failure failure = takeFailure(compiled.takeError());
      bool isRefused = failure.code == ExitCode::Usage && manner.precision;
      if (failure.code != ExitCode::Unsupported && !isRefused)
        return makeError(failure.code, failure.text);
      if (!manner.precision)
        refusals[{measured.device, ""}] = failure.text;
      return llvm::Error::success();
    }
    runtime::InstanceOptions instance{request.threads};
    instance.devices.settings = request.settings;
    instance.devices.backends = request.runHalves;
    auto loaded = LoadedModel::load(compiled->objects, std::move(instance));
    if (!loaded)
      return loaded.takeError();
    return guardRuntime([&] {
      timeKernels((*loaded)->instance(), device, measured);
      return llvm::Error::success();
    });
  }

  /// Kernels of equal work are one sample; a further one moves its time halfway, as a ratio.
  static void add(std::vector<KernelSample> &samples, const KernelSample &sample) {
    auto alike = llvm::find_if(
        samples, [&](const KernelSample &known) { return known.flops == sample.flops && known.bytes == sample.bytes; });
    if (alike == samples.end())
      samples.push_back(sample);
    else
      alike->seconds = std::sqrt(alike->seconds * sample.seconds);
  }

  void timeKernels(runtime::Instance &instance, const ir::TargetDevice &device, DeviceCalibration &measured) {
    const runtime::Plan &plan = instance.plan();
    bool isHost = device.name == ir::kHostDevice;
    initialise(instance, /*seed=*/0);
    instance.team().enter([&] {
      for (const runtime::Entry &entry : plan.entries) {
        if (entry.isDerivation)
          continue;
        constexpr size_t kLeastCalls = 5, kMostCalls = 200;
        int64_t rows = entry.hasRows() ? plan.capacity : 1;
        std::vector<double> seconds = runtime::medianOfCalls(runtime::timeActions(
            instance, entry, rows, {kLeastCalls, kMostCalls, request.seconds / double(plan.entries.size())}));
        for (auto [listed, time] : llvm::zip_equal(plan.actionsOf(entry, /*microbatches=*/1), seconds)) {
          const runtime::Launch *launch = listed.action->launch();
          if (!launch)
            continue;
          const runtime::Kernel &kernel = plan.kernels[launch->kernel];
          if ((kernel.device == 0) != isHost)
            continue;
          if (!(time > 0))
            refusals[{measured.device, kernel.kind}] = "its clock showed no time for " + kernel.name;
          else
            add(measured.kinds[kernel.kind], {kernel.cost.flopsFor(rows), kernel.cost.bytesFor(rows), time});
        }
      }
    });
  }

  const MeasureRequest &request;
  std::map<std::string, std::string> timedKinds;                       // kinds timed on some device, with that device
  std::map<std::pair<std::string, std::string>, std::string> refusals; // by device and kind, or of whole models
  std::vector<BackendFile> files;
  std::vector<Graph> graphs = calibrationModels();       // own their modules' context
  MLIRContext context{MLIRContext::Threading::DISABLED}; // failure to create a thread would end the process
  std::vector<OwningOpRef<ModuleOp>> models;
};

} // namespace

llvm::Expected<std::vector<ClockCalibration>> measureDevices(const MeasureRequest &request) {
  return Measuring(request).run();
}

} // namespace sluice::compiler
