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

/// The functions of passes/Passes.h are the passes; this wraps one as a pass of MLIR's pass manager.
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

static std::vector<PassSummary> &summaries() {
  static std::vector<PassSummary> all;
  return all;
}

const std::vector<PassSummary> &sluicePasses() { return summaries(); }

static void add(const std::string &name, const std::string &does, const PassBody &body) {
  summaries().push_back({"sluice-" + name, does});
  registerPass([=] { return std::make_unique<NamedPass>("sluice-" + name, does, body); });
}

/// A pass that cannot fail.
template <typename Body> static PassBody always(Body body) {
  return [=](ModuleOp module) {
    body(module);
    return success();
  };
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

/// A pass that uses the backends of the module's target, in its own sessions.
template <typename Body> static PassBody withBackends(Body body) {
  return [=](ModuleOp module) -> LogicalResult {
    auto tables = backendsFor(module);
    if (failed(tables))
      return failure();
    auto backends = passes::DeviceBackends::create(module, *tables, "native");
    return backends ? body(module, *backends) : failure();
  };
}

/// A pass that only needs the module's target.
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

/// Puts ops into kernels, fused or one each.
static PassBody fuseKernels(bool fuse) {
  return withBackends([=](ModuleOp module, const passes::DeviceBackends &backends) {
    passes::fuseKernels(module, backends, fuse);
    return success();
  });
}

/// One pass per bucketing policy.
static void addSchedules() {
  auto schedule = [](passes::BucketPolicy buckets) {
    return withTarget([=](ModuleOp module, const ir::Target &target) {
      passes::scheduleActions(module, target, passes::CostModel(), buckets);
      return success();
    });
  };
  std::string does = "Assign a queue, a position and waits to every kernel and copy";
  add("schedule-actions", does, schedule(passes::BucketPolicy::Auto));
  add("schedule-fewest-buckets", does + ", with the fewest collectives", schedule(passes::BucketPolicy::Fewest));
  add("schedule-each-alone", does + ", with one collective per value", schedule(passes::BucketPolicy::Each));
}

void registerSluicePasses() {
  add("promote-to-f64", "Compute in f64 instead of f32", always(passes::promoteToF64));
  add("keep-variables", "Keep the consumers of values that gradients are taken with respect to",
      always(passes::keepVariables));
  add("mix-precision", "Convert matrix products to the precision of the module", always(passes::mixPrecision));
  add("build-entry-points", "Build entry points with gradients and updates from the graph", passes::buildEntryPoints);
  add("lower-branches", "Lower branches to loops", always(passes::lowerBranches));
  add("lower-scans", "Lower scans to loops", always(passes::lowerScans));
  add("expand-composites", "Expand composite ops whose formula has sums over the rows",
      always(passes::expandComposites));
  add("carry-rows", "Resize states that rows carry between steps to the rows of a full call",
      always(passes::carryRows));
  add("partition-rows", "Build the program that each replica runs on its shard of the rows", passes::partitionRows);
  add("merge-collectives", "Merge collectives of equal values",
      always([](ModuleOp module) { passes::mergeCollectives(module); }));
  add("name-collectives", "Name each collective after its value", always(passes::nameCollectives));
  add("shard-optimizer", "Shard optimizer state and updates among replicas", passes::shardOptimizer);
  add("narrow-gradients", "Narrow gradients to the wire type for reduction", always(passes::narrowGradients));
  add("bucket-shards", "Bucket exchanges of shards of equal kind",
      always([](ModuleOp module) { passes::bucketShards(module, 1); }));
  add("cut-microbatches", "Split entry points into parts per microbatch and per call", passes::cutMicrobatches);
  add("canonicalize", "Canonicalize ops", passes::canonicalize);
  add("simplify", "Canonicalize ops, merge equal ops and remove dead ops", passes::simplify);
  // One pass, because ops may not read values of other devices in between.
  add("place-values", "Assign a device to every value, and insert copies between devices", [](ModuleOp module) {
    if (failed(passes::placeValues(module)))
      return failure();
    passes::hoistConditions(module);
    return passes::insertCopies(module);
  });
  add("deduplicate-copies", "Deduplicate copies: one per value and destination", always(passes::deduplicateCopies));
  add("verify-placed", "Verify that values cross devices only in copies", passes::verifyPlaced);
  add("expand-missing", "Expand ops that have no kernel on their device",
      withBackends([](ModuleOp module, const passes::DeviceBackends &backends) {
        passes::expandMissing(module, backends);
        return success();
      }));
  add("check-support", "Verify that backends support the ops of their devices", withBackends(passes::checkSupport));
  add("assign-layouts", "Choose layouts from the proposals of the backends", withBackends(passes::assignLayouts));
  add("fuse-kernels", "Fuse ops into kernels", fuseKernels(true));
  add("isolate-ops", "Wrap every op in a separate kernel", fuseKernels(false));
  add("settle-loops", "Give each loop-carried value one buffer", always(passes::settleLoops));
  add("prepare-kernels", "Compile kernels with the backends, and launch them as functions",
      withBackends([](ModuleOp module, const passes::DeviceBackends &backends) {
        return passes::prepareKernels(module, backends);
      }));
  addSchedules();
  add("plan-memory", "Assign an arena and an offset to every buffer",
      withTarget([](ModuleOp module, const ir::Target &target) {
        passes::planMemory(module, target, /*reuse=*/true);
        return success();
      }));
  add("plan-waits", "Add the waits that memory reuse requires",
      withTarget([](ModuleOp module, const ir::Target &target) {
        passes::planWaits(module, target);
        return success();
      }));
  add("verify-plan", "Verify that waits keep every buffer until its last use", withTarget(passes::verifyPlan));

  std::string before = "model";
  for (StringRef phase : passes::phaseNames()) {
    add("phase-" + phase.str(), "Run the phase `" + phase.str() + "` on a dump of `" + before + "`",
        [before, phase](ModuleOp module) { return runPhase(module, before, phase); });
    before = phase.str();
  }
}

} // namespace sluice::tool
