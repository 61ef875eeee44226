#include "tools/sluice-opt/SluicePasses.h"

#include "ir/Target.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"
#include "passes/backend/DeviceBackends.h"
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

/// The compile halves that the module's target needs.
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

/// A pass that asks the backends of the module's target, in sessions of its own.
template <typename Body> static PassBody withBackends(Body body) {
  return [=](ModuleOp module) -> LogicalResult {
    auto tables = backendsFor(module);
    if (failed(tables))
      return failure();
    auto backends = passes::DeviceBackends::create(module, *tables, "native");
    return backends ? body(module, *backends) : failure();
  };
}

/// A pass that asks for the module's target alone.
template <typename Body> static PassBody withTarget(Body body) {
  return [=](ModuleOp module) -> LogicalResult {
    FailureOr<ir::Target> target = ir::Target::of(module);
    return succeeded(target) ? body(module, *target) : failure();
  };
}

static LogicalResult runPhase(ModuleOp module, StringRef before, StringRef phase) {
  auto tables = backendsFor(module);
  if (failed(tables))
    return failure();
  passes::PipelineOptions options;
  options.backends = std::move(*tables);
  options.compileFrom = before.str();
  options.compileTo = phase.str();
  return success(succeeded(passes::runPipeline(module, options)));
}

/// Puts ops into kernels, several where they fuse or one each.
static PassBody fuseKernels(bool fuse) {
  return withBackends([=](ModuleOp module, const passes::DeviceBackends &backends) {
    passes::fuseKernels(module, backends, fuse);
    return success();
  });
}

/// One pass for each way in which collectives share.
static void addSchedules() {
  auto schedule = [](passes::BucketPolicy buckets) {
    return withTarget([=](ModuleOp module, const ir::Target &target) {
      passes::scheduleActions(module, target, passes::CostModel(), buckets);
      return success();
    });
  };
  std::string does = "Give every kernel and copy its queue, its place and its waits";
  add("schedule-actions", does, schedule(passes::BucketPolicy::Auto));
  add("schedule-fewest-buckets", does + ", with as few collectives as can be", schedule(passes::BucketPolicy::Fewest));
  add("schedule-each-alone", does + ", with a collective for each value", schedule(passes::BucketPolicy::Each));
}

void registerSluicePasses() {
  add("promote-to-f64", "Compute in double what is in single precision", always(passes::promoteToF64));
  add("keep-variables", "Let what reads a value that a gradient is asked by go on reading it",
      always(passes::keepVariables));
  add("mix-precision", "Bring products to the precision that the module says", always(passes::mixPrecision));
  add("build-entry-points", "Make entry points, with gradients and updates, of the graph", passes::buildEntryPoints);
  add("lower-branches", "Make loops of branches", always(passes::lowerBranches));
  add("lower-scans", "Make loops of scans", always(passes::lowerScans));
  add("expand-composites", "Replace ops by the formula that they stand for, where it is of sums over the rows",
      always(passes::expandComposites));
  add("carry-rows", "Give states that rows carry from step to step the rows of a full call", always(passes::carryRows));
  add("partition-rows", "Make the program that each replica runs on its share of the rows", passes::partitionRows);
  add("merge-collectives", "Let a value be exchanged once",
      always([](ModuleOp module) { passes::mergeCollectives(module); }));
  add("name-collectives", "Say of each collective what it is of", always(passes::nameCollectives));
  add("shard-optimizer", "Keep and update a shard of what the optimizer keeps in each replica", passes::shardOptimizer);
  add("narrow-gradients", "Reduce gradients in the wire type", always(passes::narrowGradients));
  add("bucket-shards", "Exchange shards of a kind as one",
      always([](ModuleOp module) { passes::bucketShards(module, 1); }));
  add("cut-microbatches", "Make parts of entry points, for each microbatch and once a call", passes::cutMicrobatches);
  add("canonicalize", "Bring ops to the forms that they call canonical", passes::canonicalize);
  add("simplify", "Bring ops to canonical forms, merge equal ones and remove dead ones", passes::simplify);
  // One pass, because ops may not read values of other devices in between.
  add("place-values", "Give every value a device, and put a copy where an op reads one of another",
      [](ModuleOp module) {
        return failure(failed(passes::placeValues(module)) || failed(passes::insertCopies(module)));
      });
  add("settle-copies", "Leave one copy per value and destination", always(passes::settleCopies));
  add("verify-placed", "Check that nothing crosses devices without a copy", passes::verifyPlaced);
  add("expand-missing", "Replace ops for which their device has no kernel by the formula that they stand for",
      withBackends([](ModuleOp module, const passes::DeviceBackends &backends) {
        passes::expandMissing(module, backends);
        return success();
      }));
  add("check-support", "Ask backends whether they can run the ops of their devices",
      withBackends(passes::checkSupport));
  add("assign-layouts", "Choose layouts from what the backends propose", withBackends(passes::assignLayouts));
  add("fuse-kernels", "Put ops into kernels, several where they fuse", fuseKernels(true));
  add("isolate-ops", "Put every op into a kernel of its own", fuseKernels(false));
  add("settle-loops", "Let what loops carry have one place", always(passes::settleLoops));
  add("prepare-kernels", "Have the backends make each kernel, and launch it as a function",
      withBackends([](ModuleOp module, const passes::DeviceBackends &backends) {
        return passes::prepareKernels(module, backends);
      }));
  addSchedules();
  add("plan-memory", "Give every buffer an arena and an offset",
      withTarget([](ModuleOp module, const ir::Target &target) {
        passes::planMemory(module, target, /*reuse=*/true);
        return success();
      }));
  add("plan-waits", "Have actions wait for what the memory needs",
      withTarget([](ModuleOp module, const ir::Target &target) {
        passes::planWaits(module, target);
        return success();
      }));
  add("verify-plan", "Check that the waits keep every buffer until all have read it", withTarget(passes::verifyPlan));

  std::string before = "model";
  for (StringRef phase : passes::phaseNames()) {
    add("phase-" + phase.str(), "Run the phase `" + phase.str() + "` on a dump of `" + before + "`",
        [before, phase](ModuleOp module) { return runPhase(module, before, phase); });
    before = phase.str();
  }
}

} // namespace sluice::tool
