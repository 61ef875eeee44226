#include "tools/sluice-opt/SluicePasses.h"

#include "ir/Dialect.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/Backend.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"
#include "tools/compiler/Backends.h"

using namespace mlir;

namespace sluice::tool {

/// The functions of passes/Passes.h are the passes; this makes one of them a pass of MLIR's pass manager.
using PassBody = std::function<LogicalResult(ModuleOp)>;

namespace {
struct NamedPass : PassWrapper<NamedPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NamedPass)
  NamedPass(std::string name, std::string does, PassBody body)
      : name(std::move(name)), does(std::move(does)), body(std::move(body)) {}

  StringRef getArgument() const override { return name; }
  StringRef getDescription() const override { return does; }
  void runOnOperation() override {
    if (failed(body(getOperation())))
      signalPassFailure();
  }

  std::string name, does;
  PassBody body;
};
} // namespace

static void add(const std::string &name, const std::string &does, const PassBody &body) {
  registerPass([=] { return std::make_unique<NamedPass>("sluice-" + name, does, body); });
}

/// A pass that cannot fail.
template <typename Body> static PassBody always(Body body) {
  return [=](ModuleOp module) {
    body(module);
    return success();
  };
}

static FailureOr<const sluice_backend_compile *> cpuBackend(ModuleOp module) {
  auto backend = compiler::findBackend("cpu");
  if (backend)
    return *backend;
  return module.emitError(llvm::toString(backend.takeError()));
}

/// A pass that asks the CPU's backend, in a session of its own.
template <typename Body> static PassBody withBackend(Body body) {
  return [=](ModuleOp module) -> LogicalResult {
    auto table = cpuBackend(module);
    if (failed(table))
      return failure();
    auto capacity = module->getAttrOfType<IntegerAttr>(ir::kCapacityAttr);
    sluice_target_options target{sizeof(target), "native", capacity ? capacity.getInt() : 0, nullptr};
    auto backend = passes::Backend::create(**table, target, module.getLoc());
    return backend ? body(module, *backend) : failure();
  };
}

static LogicalResult runPhase(ModuleOp module, StringRef before, StringRef phase) {
  auto table = cpuBackend(module);
  if (failed(table))
    return failure();
  passes::PipelineOptions options;
  options.backend = *table;
  options.compileFrom = before.str();
  options.compileTo = phase.str();
  return success(succeeded(passes::runPipeline(module, options)));
}

void registerSluicePasses() {
  add("promote-to-f64", "Compute in double what is in single precision", always(passes::promoteToF64));
  add("build-entry-points", "Make entry points, with gradients and updates, of the graph", passes::buildEntryPoints);
  add("expand-composites", "Replace ops that stand for a formula by it", always(passes::expandComposites));
  add("simplify", "Merge equal ops and remove dead ones", passes::simplify);
  add("place-values", "Give every value a device", always([](ModuleOp module) { passes::placeValues(module, "cpu"); }));
  add("verify-placed", "Check that nothing crosses devices without a copy", passes::verifyPlaced);
  add("assign-layouts", "Choose layouts from what the backend proposes", withBackend(passes::assignLayouts));
  add("fuse-kernels", "Put ops into kernels, several where they fuse",
      [](ModuleOp module) { return passes::fuseKernels(module, true); });
  add("outline-kernels", "Put every op into a kernel of its own",
      [](ModuleOp module) { return passes::fuseKernels(module, false); });
  add("schedule-kernels", "Give every kernel its place in a queue", always(passes::scheduleKernels));
  add("prepare-kernels", "Have the backend make each kernel", withBackend(passes::prepareKernels));
  add("plan-memory", "Give every buffer an arena and an offset",
      [](ModuleOp module) { return passes::planMemory(module, true); });

  std::string before = "model";
  for (StringRef phase : passes::phaseNames()) {
    add("phase-" + phase.str(), "Run the phase `" + phase.str() + "` on a dump of `" + before + "`",
        [before, phase](ModuleOp module) { return runPhase(module, before, phase); });
    before = phase.str();
  }
}

} // namespace sluice::tool
