#include "tools/compiler/Compiler.h"

#include "ir/Dialect.h"
#include "ir/Module.h"
#include "ir/Target.h"
#include "passes/driver/Configure.h"
#include "passes/driver/OptionValues.h"
#include "passes/kernel/KnownFusions.h"
#include "runtime/files/Process.h"
#include "tools/compiler/Backends.h"
#include "tools/compiler/CompilerContext.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/InitialData.h"
#include "tools/compiler/Installation.h"
#include "tools/compiler/KernelFiles.h"
#include "tools/compiler/Phases.h"
#include "tools/compiler/placement/Placement.h"
#include "tools/compiler/placement/costs/Costs.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <new>

using namespace mlir;

namespace sluice::compiler {

/// MLIR does not check allocations, so a phase only begins if this much memory is free.
static constexpr size_t kMemoryOfAPhase = size_t(32) << 20;

static llvm::Expected<passes::TargetCosts> findCosts(ModuleOp module, const passes::PlacementRequest &request,
                                                     const CompileOptions &options) {
  ir::DiagnosticText diagnostics(module.getContext());
  FailureOr<ir::Target> target = ir::Target::of(module);
  if (failed(target))
    return passes::errorOf(diagnostics);
  return costsOf(*target, request, options);
}

static llvm::Expected<passes::Configured> configureFor(ModuleOp module, const CompileOptions &options,
                                                       const CompileTask &task) {
  auto configured = passes::configure(module, options, {task.compileFrom, task.compileTo},
                                      {&hostBackend(), [](llvm::StringRef name) { return findBackend(name); }});
  if (configured)
    configured->placement.prefer = task.prefer;
  return configured;
}

static passes::PipelineInputs inputsFor(ModuleOp module, const CompileOptions &options, const CompileTask &task,
                                        const passes::Configured &start) {
  passes::PipelineInputs inputs;
  inputs.backends = start.backends;
  inputs.compileFrom = start.phase;
  if (!start.placement.chooses)
    inputs.memoryLimits = start.placement.caps;
  if (!task.compileTo.empty() && task.compileTo != "executable")
    inputs.compileTo = task.compileTo;
  inputs.variant = task.variant;
  inputs.backendFolder = findBackendFolder();
  if (ir::ModelOp model = ir::findModel(module); model && model.getData() && task.emit == Emit::Executable)
    inputs.dataPath = findData(*model.getData());
  inputs.kernelTexts = task.kernelTexts;
  if (inputs.kernelTexts.empty() && !options.dump_ir.empty())
    inputs.kernelTexts = options.dump_ir + "/kernels";
  inputs.verifiesEach = task.verifiesEach;
  return inputs;
}

namespace {

/// Inputs of a compilation from outside of the module, and its observers.
class Services {
public:
  Services(const CompileOptions &options, const CompileTask &task, const passes::Configured &start,
           const passes::PipelineInputs &inputs, Compiled &compiled)
      : options(options), task(task), start(start), inputs(inputs), compiled(compiled) {}

  passes::PipelineServices forPipeline() {
    passes::PipelineServices services;
    if (start.placement.chooses)
      services.chooseDevices = [this](ModuleOp module) { return chooseDevices(module); };
    services.costsOf = [this](ModuleOp module) { return kept(findCosts(module, start.placement, options)); };
    services.readInitialValues = [this](ModuleOp module) {
      return kept(readInitialData(module, task.values, passes::promotesToF64(options)));
    };
    services.afterPass = [this](ModuleOp module, llvm::StringRef phase, llvm::StringRef pass, double seconds) {
      passes.push_back({pass.str(), seconds});
      if (task.observer)
        task.observer(module, phase, pass);
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
    FailureOr<PlacementDecision> decision = kept(choosePlacement(module, options, inputs, start.placement));
    if (failed(decision))
      return mlir::failure();
    compiled.placement = std::move(decision->report);
    return std::move(decision->costs);
  }

  const CompileOptions &options;
  const CompileTask &task;
  const passes::Configured &start;
  const passes::PipelineInputs &inputs;
  Compiled &compiled;
  std::vector<PassTime> passes; // of the current phase
  std::optional<Failure> failure;
};

} // namespace

/// Writes the compiler's files of each kernel next to those of the backends.
static llvm::Error writeKernelFiles(ModuleOp module, const CompileOptions &options,
                                    const passes::PipelineInputs &inputs, const passes::PlacementRequest &placement,
                                    std::optional<passes::TargetCosts> costs, Compiled &compiled) {
  if (!costs) {
    auto found = findCosts(module, placement, options);
    if (!found)
      return found.takeError();
    costs = std::move(*found);
  }
  return writeKernels(module, inputs.kernelTexts, costs->model, compiled.functions).moveInto(compiled.kernels);
}

llvm::Expected<Compiled> compileModule(ModuleOp module, const CompileOptions &options, const CompileTask &task,
                                       CompilerContext *context) {
  auto start = configureFor(module, options, task);
  if (!start)
    return start.takeError();
  Compiled compiled;
  passes::PipelineInputs inputs = inputsFor(module, options, task, *start);
  inputs.kernels = context ? &context->kernels() : nullptr;
  inputs.kernelFolder = context && options.cache ? context->kernelFolder() : nullptr;
  passes::KnownFusions fusions; // candidates and the final compilation share entry points
  if (start->placement.chooses)
    inputs.fusions = &fusions;
  Services services(options, task, *start, inputs, compiled);
  auto lowered = runPhases(module, options, inputs, compiled.warnings, services.forPipeline());
  if (!lowered)
    return services.errorOr(lowered.takeError());
  compiled.objects = std::move(lowered->objects);
  compiled.plan = std::move(lowered->plan);
  compiled.values = std::move(lowered->values);
  compiled.functions = std::move(lowered->functions);
  compiled.shared = lowered->shared;
  if (inputs.kernelFolder)
    compiled.cacheProblem = inputs.kernelFolder->problem();
  if (inputs.compileTo == "lowered" && !inputs.kernelTexts.empty())
    if (llvm::Error error = writeKernelFiles(module, options, inputs, start->placement, lowered->costs, compiled))
      return error;
  compiled.communication = std::move(lowered->communication);
  compiled.replicaLink = lowered->replicaLink;
  return std::move(compiled); // the forecast points into the plan
}

} // namespace sluice::compiler
