#include "tools/compiler/Compiler.h"

#include "ir/Dialect.h"
#include "ir/Module.h"
#include "ir/Target.h"
#include "passes/assign/search/Evaluation.h"
#include "passes/kernel/KnownFusions.h"
#include "runtime/files/Process.h"
#include "runtime/plan/DeviceName.h"
#include "tools/compiler/Backends.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/InitialData.h"
#include "tools/compiler/Installation.h"
#include "tools/compiler/KernelFiles.h"
#include "tools/compiler/Phases.h"
#include "tools/compiler/PrepareModule.h"
#include "tools/compiler/placement/Placement.h"
#include "tools/compiler/placement/costs/Costs.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <new>
#include <set>

using namespace mlir;

namespace sluice::compiler {

/// MLIR does not check allocations, so a phase only begins if this much memory is free.
static constexpr size_t kMemoryOfAPhase = size_t(32) << 20;

std::vector<llvm::StringRef> phaseNames() {
  std::vector<llvm::StringRef> names = passes::phaseNames().vec();
  names.emplace_back("executable");
  return names;
}

/// Checks the planned memory of each device against its limit in --devices.
static llvm::Error checkLimits(ModuleOp module, const runtime::Plan &plan, const PlacementRequest &placement) {
  ir::DiagnosticText diagnostics(module.getContext());
  FailureOr<ir::Target> target = ir::Target::of(module);
  if (failed(target))
    return errorOf(diagnostics);
  int64_t replicas = std::max<int64_t>(target->replicas(), 1);
  for (const auto &[name, limit] : placement.caps)
    for (auto [number, device] : llvm::enumerate(target->devices()))
      for (int64_t replica = 0; replica < replicas; ++replica) {
        bool isHost = number == 0;
        int64_t needed = plan.peakBytes(number) * (isHost ? replicas : 1); // the host has all replicas
        if (device.spelling(replica) == name && needed > limit)
          return makeError(
              ExitCode::Exhausted,
              "cannot fit the model into " + runtime::shownDevice(device.name, name) + ": its planned peak memory is " +
                  llvm::Twine(needed) + " bytes, and --devices allows " + llvm::Twine(limit) +
                  "; use fewer rows (--batch), microbatches (--accumulate), or more devices and --placement auto");
      }
  return llvm::Error::success();
}

static llvm::Expected<passes::TargetCosts> findCosts(ModuleOp module, const PlacementRequest &request,
                                                     const passes::BackendSettings &settings) {
  ir::DiagnosticText diagnostics(module.getContext());
  FailureOr<ir::Target> target = ir::Target::of(module);
  if (failed(target))
    return errorOf(diagnostics);
  return costsOf(*target, request, settings);
}

/// The backends of devices that add values in a tree.
static std::set<std::string> backendsOfTrees(const runtime::Plan &plan) {
  std::set<std::string> backends;
  for (const runtime::Entry &entry : plan.entries)
    for (const runtime::ListedAction &listed : entry.allActions())
      if (const runtime::Collective *collective = listed.action->collective();
          collective && collective->reduction == runtime::Reduction::treeSum)
        backends.insert(plan.devices[plan.queues[listed.action->queues.front()].device].backend);
  return backends;
}

/// Logical shards of replicas are added in a tree, which not all backends support.
static llvm::Error checkTrees(const runtime::Plan &plan, const CompileOptions &options) {
  for (const std::string &name : backendsOfTrees(plan)) {
    auto backend = findBackend(name);
    if (!backend)
      return backend.takeError();
    auto settings = options.settings.find(name);
    auto target = describeTarget(**backend, options.cpu, settings == options.settings.end() ? "" : settings->second);
    if (!target)
      return target.takeError();
    if (!target->noTreeSums.empty())
      return makeError(ExitCode::Unsupported,
                       "cannot apply --deterministic to replicas on " + name + ": " + target->noTreeSums);
  }
  return llvm::Error::success();
}

/// Predicts the communication of the plan's replicas.
static void forecastReplicas(const passes::TargetCosts &costs, Compiled &compiled) {
  const runtime::Plan &plan = compiled.plan;
  auto runsHere = [&](size_t queue) { return costs.hostRunsHere && plan.queues[queue].device == 0; };
  for (const runtime::Entry &entry : plan.entries) {
    if (entry.isPart)
      continue;
    runtime::CallModel model(plan, entry, plan.microbatches, runsHere);
    runtime::CommunicationForecast forecast =
        runtime::forecastCommunication(plan, model, passes::workSeconds(entry, plan, costs.model));
    if (forecast.collectives.empty())
      continue;
    const runtime::Slot &sent = forecast.collectives.front().collective->send.slot;
    const std::string &device = plan.devices[plan.deviceOf(sent)].name;
    compiled.replicaLink = costs.model.link(device, device);
    compiled.communication.push_back({entry.name, std::move(forecast)});
  }
}

static passes::PipelineOptions pipelineFor(ModuleOp module, const CompileOptions &options,
                                           const PreparedModule &start) {
  passes::PipelineOptions pipeline;
  pipeline.backends = start.backends;
  pipeline.compileFrom = start.phase;
  if (!options.compileTo.empty() && options.compileTo != "executable")
    pipeline.compileTo = options.compileTo;
  pipeline.dumpIrDir = options.dumpIrDir;
  pipeline.cpu = options.cpu;
  pipeline.settings = options.settings;
  pipeline.variant = options.variant;
  pipeline.backendFolder = findBackendFolder();
  if (ir::ModelOp model = ir::findModel(module); model && model.getData() && options.emit == Emit::Executable)
    pipeline.dataPath = findData(*model.getData());
  pipeline.buckets = options.buckets.value_or(passes::BucketPolicy::Auto);
  pipeline.kernelTexts = options.kernelTexts;
  if (pipeline.kernelTexts.empty() && !options.dumpIrDir.empty())
    pipeline.kernelTexts = options.dumpIrDir + "/kernels";
  pipeline.capacity = options.capacity;
  pipeline.fuse = options.fuse;
  pipeline.reuseMemory = options.reuseMemory;
  pipeline.promoteF64 = options.promoteF64;
  pipeline.precision = start.precision;
  pipeline.verifiesEach = options.verifiesEach;
  return pipeline;
}

namespace {

/// Inputs of a compilation from outside of the module, and its observers.
class Services {
public:
  Services(const CompileOptions &options, const PreparedModule &start, const passes::PipelineOptions &pipeline,
           Compiled &compiled)
      : options(options), start(start), pipeline(pipeline), compiled(compiled) {}

  passes::PipelineServices forPipeline() {
    passes::PipelineServices services;
    if (start.placement.chooses)
      services.chooseDevices = [this](ModuleOp module) { return chooseDevices(module); };
    services.costsOf = [this](ModuleOp module) { return kept(findCosts(module, start.placement, options.settings)); };
    services.readInitialValues = [this](ModuleOp module) {
      return kept(readInitialData(module, options.values, options.promoteF64));
    };
    services.afterPass = [this](ModuleOp module, llvm::StringRef phase, llvm::StringRef pass, double seconds) {
      passes.push_back({pass.str(), seconds});
      if (options.observer)
        options.observer(module, phase, pass);
    };
    services.afterPhase = [this](llvm::StringRef phase, double seconds) {
      compiled.phases.push_back({phase.str(), seconds, std::move(passes)});
      passes.clear();
      if (!files::memoryIsLeft(kMemoryOfAPhase))
        throw std::bad_alloc();
    };
    return services;
  }

  /// The error of a service, or else of the pipeline.
  llvm::Error errorOr(llvm::Error error) {
    if (!failure)
      return error;
    llvm::consumeError(std::move(error));
    return makeError(failure->code, failure->text);
  }

private:
  /// Keeps the error, whose exit code a diagnostic would lose.
  template <typename T> FailureOr<T> kept(llvm::Expected<T> value) {
    if (value)
      return std::move(*value);
    failure = takeFailure(value.takeError());
    return mlir::failure();
  }

  FailureOr<passes::CostModel> chooseDevices(ModuleOp module) {
    FailureOr<PlacementDecision> decision = kept(choosePlacement(module, pipeline, start.placement));
    if (failed(decision))
      return mlir::failure();
    compiled.placement = std::move(decision->report);
    return std::move(decision->costs);
  }

  const CompileOptions &options;
  const PreparedModule &start;
  const passes::PipelineOptions &pipeline;
  Compiled &compiled;
  std::vector<PassTime> passes; // of the current phase
  std::optional<Failure> failure;
};

} // namespace

/// Writes the compiler's files of each kernel next to those of the backends.
static llvm::Error writeKernelFiles(ModuleOp module, const passes::PipelineOptions &pipeline,
                                    const PlacementRequest &placement, std::optional<passes::TargetCosts> costs,
                                    Compiled &compiled) {
  if (!costs) {
    auto found = findCosts(module, placement, pipeline.settings);
    if (!found)
      return found.takeError();
    costs = std::move(*found);
  }
  return writeKernels(module, pipeline.kernelTexts, costs->model, compiled.functions).moveInto(compiled.kernels);
}

llvm::Expected<Compiled> compileModule(ModuleOp module, const CompileOptions &options) {
  auto start = prepareModule(module, options);
  if (!start)
    return start.takeError();
  Compiled compiled;
  passes::PipelineOptions pipeline = pipelineFor(module, options, *start);
  passes::KnownFusions fusions; // candidates and the final compilation share entry points
  if (start->placement.chooses)
    pipeline.fusions = &fusions;
  Services services(options, *start, pipeline, compiled);
  auto lowered = runPhases(module, pipeline, compiled.warnings, services.forPipeline());
  if (!lowered)
    return services.errorOr(lowered.takeError());
  compiled.objects = std::move(lowered->objects);
  compiled.plan = std::move(lowered->plan);
  compiled.values = std::move(lowered->values);
  compiled.functions = std::move(lowered->functions);
  if (pipeline.compileTo == "lowered" && !pipeline.kernelTexts.empty())
    if (llvm::Error error = writeKernelFiles(module, pipeline, start->placement, lowered->costs, compiled))
      return error;
  if (llvm::Error error = checkTrees(compiled.plan, options))
    return error;
  if (!start->placement.chooses)
    if (llvm::Error error = checkLimits(module, compiled.plan, start->placement))
      return error;
  if (lowered->costs && start->replicas != 1)
    forecastReplicas(*lowered->costs, compiled);
  return std::move(compiled); // the forecast points into the plan
}

} // namespace sluice::compiler
