#include "tools/sluice-opt/SluicePasses.h"

#include "ir/Target.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/driver/PassTable.h"
#include "passes/driver/Pipeline.h"
#include "tools/compiler/Backends.h"

using namespace mlir;

namespace sluice::tool {

using PassBody = std::function<LogicalResult(ModuleOp)>;

namespace {
/// Wraps a pass of Sluice as a pass of MLIR's pass manager.
struct NamedPass : PassWrapper<NamedPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NamedPass)
  NamedPass(std::string name, std::string summary, PassBody body)
      : name(std::move(name)), summary(std::move(summary)), body(std::move(body)) {}

  StringRef getArgument() const override { return name; }
  StringRef getDescription() const override { return summary; }
  void runOnOperation() override {
    if (failed(body(getOperation())))
      signalPassFailure();
  }

  std::string name, summary;
  PassBody body;
};
} // namespace

static std::vector<PassSummary> &summaries() {
  static std::vector<PassSummary> all;
  return all;
}

const std::vector<PassSummary> &sluicePasses() { return summaries(); }

static void add(const std::string &name, const std::string &summary, const PassBody &body) {
  summaries().push_back({"sluice-" + name, summary});
  registerPass([=] { return std::make_unique<NamedPass>("sluice-" + name, summary, body); });
}

/// The compile halves for the module's target.
static FailureOr<std::vector<const sluice_backend_compile *>> backendsFor(ModuleOp module) {
  FailureOr<ir::Target> target = ir::Target::of(module);
  if (failed(target))
    return failure();
  std::vector<const sluice_backend_compile *> tables;
  for (const ir::TargetDevice &device : target->devices()) {
    auto backend = compiler::findBackend(device.backend);
    if (!backend)
      return module.emitError(llvm::toString(backend.takeError()));
    tables.push_back(*backend);
  }
  return tables;
}

/// Runs one pass, with its own sessions of the backends.
static LogicalResult runAlone(ModuleOp module, const passes::Pass &pass, const CompileOptions &options) {
  passes::PipelineInputs inputs;
  passes::PipelineServices services;
  passes::Compilation compilation{module, options, inputs, services};
  if (pass.uses == passes::Uses::Backends) {
    auto tables = backendsFor(module);
    if (failed(tables))
      return failure();
    compilation.backends = passes::DeviceBackends::create(module, *tables, options);
    if (!compilation.backends)
      return failure();
  }
  return pass.run(compilation);
}

static void addPass(const passes::Pass &pass, const std::string &name, const std::string &summary,
                    const CompileOptions &options = {}) {
  add(name, summary, [&pass, options](ModuleOp module) { return runAlone(module, pass, options); });
}

/// The passes that depend on an option, with another value of it.
static void addVariants() {
  CompileOptions unfused, fewest, each;
  unfused.fuse = false;
  fewest.buckets = "fewest";
  each.buckets = "each";
  addPass(*passes::findPass("fuse-kernels"), "isolate-ops", "Wrap every op in a separate kernel", unfused);
  const passes::Pass &schedule = *passes::findPass("schedule-actions");
  addPass(schedule, "schedule-fewest-buckets", schedule.summary.str() + ", with the fewest collectives", fewest);
  addPass(schedule, "schedule-each-alone", schedule.summary.str() + ", with one collective per value", each);
}

static LogicalResult runPhase(ModuleOp module, StringRef before, StringRef phase) {
  auto tables = backendsFor(module);
  if (failed(tables))
    return failure();
  passes::PipelineInputs inputs;
  inputs.backends = std::move(*tables);
  inputs.compileFrom = before.str();
  inputs.compileTo = phase.str();
  return success(succeeded(passes::runPipeline(module, CompileOptions(), inputs)));
}

void registerSluicePasses() {
  for (const passes::Pass &pass : passes::allPasses())
    if (pass.uses != passes::Uses::Compilation)
      addPass(pass, pass.name.str(), pass.summary.str());
  addVariants();
  std::string before = "model";
  for (const passes::Phase &phase : passes::allPhases()) {
    if (phase.isNeeded) // only in compilations that request it
      continue;
    add("phase-" + phase.name.str(), "Run the phase `" + phase.name.str() + "` on a dump of `" + before + "`",
        [before, &phase](ModuleOp module) { return runPhase(module, before, phase.name); });
    before = phase.name.str();
  }
}

} // namespace sluice::tool
