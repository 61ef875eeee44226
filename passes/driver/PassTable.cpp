#include "passes/driver/PassTable.h"

#include "ir/Layout.h"
#include "ir/Module.h"
#include "ir/Work.h"
#include "passes/Passes.h"
#include "passes/artifact/CheckLimits.h"
#include "passes/artifact/ForecastReplicas.h"
#include "passes/artifact/LowerKernels.h"
#include "passes/assign/ChosenDevices.h"
#include "passes/driver/OptionValues.h"
#include "passes/parallel/ChooseShardBuckets.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace sluice::passes {

//===- bodies of passes that are more than one call ---------------------------------------------------------------===//

static LogicalResult recordOptions(Compilation &c) {
  if (c.options.capacity)
    ir::getModel(c.module).setCapacity(uint64_t(*c.options.capacity));
  if (c.options.precision)
    ir::setPrecision(c.module, *precisionOf(c.options.precision));
  return success();
}

static LogicalResult narrowWeights(Compilation &c) {
  return narrowWeights(c.module, *ir::symbolizePrecision(c.options.weights_type));
}

static LogicalResult chooseDevices(Compilation &c) {
  FailureOr<CostModel> costs = c.services.chooseDevices(c.module);
  if (failed(costs))
    return failure();
  c.costs = std::move(*costs);
  return success();
}

static LogicalResult carryRows(Compilation &c) {
  c.leavesIr = !carryRows(c.module);
  return success();
}

static LogicalResult findCosts(Compilation &c) {
  c.leavesIr = true;
  FailureOr<TargetCosts> costs = c.services.costsOf(c.module);
  if (failed(costs))
    return failure();
  c.costs = costs->model;
  c.result.costs = std::move(*costs);
  return success();
}

static LogicalResult chooseShardBuckets(Compilation &c) {
  c.leavesIr = true;
  c.shardBuckets = chooseShardBuckets(c.module, c.options, c.inputs, *c.result.costs);
  return success();
}

/// Assigns devices and inserts copies in one pass, because ops may not read values of other devices in between.
static LogicalResult placeValues(Compilation &c) {
  if (failed(placeValues(c.module, c.backends.get())))
    return failure();
  hoistConditions(c.module);
  if (failed(insertCopies(c.module, c.backends.get())))
    return failure();
  removeChosenDevices(c.module);
  return success();
}

static LogicalResult readInitialValues(Compilation &c) {
  c.leavesIr = true;
  FailureOr<InitialValues> values = c.services.readInitialValues(c.module);
  if (failed(values))
    return failure();
  c.result.values = std::move(*values);
  return success();
}

static LogicalResult scheduleActions(Compilation &c) {
  scheduleActions(c.module, c.backends->target(), c.costs, bucketPolicyOf(c.options));
  return success();
}

/// A pass that only reads the module.
static LogicalResult unchanged(Compilation &c, LogicalResult result) {
  c.leavesIr = true;
  return result;
}

/// A pass that cannot fail.
template <auto body> static LogicalResult always(Compilation &c) {
  body(c.module);
  return success();
}

template <auto body> static LogicalResult onModule(Compilation &c) { return body(c.module); }

//===- invariants -------------------------------------------------------------------------------------------------===//

/// Reports the first op in the module for which `isWrong` holds.
static LogicalResult verifyNone(ModuleOp module, llvm::function_ref<bool(Operation *)> isWrong, StringRef invariant) {
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    if (!isWrong(op))
      return WalkResult::advance();
    return op->emitOpError("violates the invariant '") << invariant << "'";
  });
  return failure(result.wasInterrupted());
}

static bool isOutsideKernels(Operation *op) {
  return ir::isCompute(op) && !ir::isCrossing(op) && isa_and_nonnull<ir::ActionListOp>(op->getParentOp());
}

static constexpr Invariant kInvariants[] = {
    {kEntryPoints, "entry-points", "entry points with gradients and updates instead of the graph",
     [](Compilation &c) {
       return verifyNone(c.module, [](Operation *op) { return isa<ir::GraphOp>(op); }, "entry-points");
     }},
    {kLoops, "loops", "loops instead of scans and branches",
     [](Compilation &c) {
       return verifyNone(c.module, [](Operation *op) { return isa<ir::ScanOp, ir::IfOp>(op); }, "loops");
     }},
    {kPlaced, "placed", "each value has a device, and only copies and collectives read values of other devices",
     [](Compilation &c) { return verifyPlaced(c.module); }},
    {kSupported, "supported", "each op has a kernel in the backend of its device",
     [](Compilation &c) { return checkSupport(c.module, *c.backends); }},
    {kLayouts, "layouts", "each value has a layout that all its consumers accept", nullptr},
    {kKernels, "kernels", "each op is in a kernel, and a kernel is one launch",
     [](Compilation &c) { return verifyNone(c.module, isOutsideKernels, "kernels"); }},
    {kOneBuffer, "one-buffer", "each loop-carried value has one buffer", nullptr},
    {kLaunches, "launches", "functions of the backends, and their launches, instead of kernels",
     [](Compilation &c) {
       return verifyNone(c.module, [](Operation *op) { return isa<ir::KernelOp>(op); }, "launches");
     }},
    {kScheduled, "scheduled", "each action has a queue, a position and waits", nullptr},
    {kMemory, "memory", "each buffer has an arena and an offset", nullptr},
    {kWaits, "waits", "the waits keep each buffer until its last use",
     [](Compilation &c) { return verifyPlan(c.module, c.backends->target()); }},
};

//===- passes -----------------------------------------------------------------------------------------------------===//

static constexpr Pass kPasses[] = {
    {"promote-to-f64", "Compute in f64 instead of f32", 0, 0, always<promoteToF64>},
    {"record-options", "Record the options of the compilation in the model", 0, 0, recordOptions, Uses::Compilation},
    {"keep-variables", "Insert a variable after each value that gradients are taken with respect to", 0, 0,
     always<keepVariables>},
    {"canonicalize", "Canonicalize ops", 0, 0, onModule<canonicalize>},
    {"mix-precision", "Convert matrix products to the precision of the module", 0, 0, always<mixPrecision>},
    {"build-entry-points", "Build entry points with gradients and updates from the graph", 0, kEntryPoints,
     onModule<buildEntryPoints>},
    {"lower-scans", "Lower scans to loops", kEntryPoints, 0, always<lowerScans>},
    {"lower-branches", "Lower branches to loops", kEntryPoints, kLoops, always<lowerBranches>},
    {"expand-composites", "Expand composite ops whose formula has sums over the rows", 0, 0, always<expandComposites>},
    {"narrow-weights", "Store the matrices of products in f16 or bf16", kEntryPoints | kLoops, 0, narrowWeights,
     Uses::Compilation},
    {"quantize-weights", "Store the matrices of products in blocks of bytes with scales", kEntryPoints | kLoops, 0,
     onModule<quantizeWeights>},
    {"simplify", "Canonicalize ops, merge equal ops and remove dead ops", 0, 0, onModule<simplify>},
    {"functional-states", "Replace states with inputs and outputs of entry points", kEntryPoints | kLoops, 0,
     onModule<functionalStates>},
    {"choose-devices", "Choose the devices that the user left open", kEntryPoints | kLoops, 0, chooseDevices,
     Uses::Compilation},
    {"find-costs", "Find the costs of the devices", kEntryPoints, 0, findCosts, Uses::Compilation},
    {"choose-shard-buckets", "Choose the number of buckets for shards of optimizer states", kEntryPoints | kLoops, 0,
     chooseShardBuckets, Uses::Compilation},
    {"carry-rows", "Resize states of rows to the rows of a full call", kEntryPoints | kLoops, 0, carryRows},
    {"partition-rows", "Build the program that each replica runs on its shard of the rows", kEntryPoints | kLoops, 0,
     onModule<partitionRows>},
    {"cut-microbatches", "Split entry points into parts per microbatch and per call", kEntryPoints | kLoops, 0,
     onModule<cutMicrobatches>},
    {"shard-optimizer", "Shard optimizer state and updates among replicas", kEntryPoints | kLoops, 0,
     onModule<shardOptimizer>},
    {"merge-collectives", "Merge collectives of equal values", kEntryPoints | kLoops, 0, always<mergeCollectives>},
    {"name-collectives", "Name each collective after its value", kEntryPoints | kLoops, 0, always<nameCollectives>},
    {"narrow-gradients", "Narrow gradients to the wire type for reduction", kEntryPoints | kLoops, 0,
     always<narrowGradients>},
    {"bucket-shards", "Bucket exchanges of shards of equal kind", kEntryPoints | kLoops, 0,
     [](Compilation &c) {
       bucketShards(c.module, c.shardBuckets);
       return success();
     }},
    {"place-values", "Assign a device to every value, and insert copies between devices", kEntryPoints | kLoops,
     kPlaced, placeValues},
    {"deduplicate-copies", "Deduplicate copies: one per value and destination", kPlaced, 0, always<deduplicateCopies>},
    {"expand-missing", "Expand ops that have no kernel on their device", kPlaced, 0,
     [](Compilation &c) {
       c.wasExpanded = expandMissing(c.module, *c.backends);
       return success();
     },
     Uses::Backends},
    {"verify-placed", "Verify that values cross devices only in copies", kPlaced, 0,
     [](Compilation &c) { return unchanged(c, verifyPlaced(c.module)); }},
    {"check-support", "Verify that backends support the ops of their devices", kPlaced, kSupported,
     [](Compilation &c) { return unchanged(c, checkSupport(c.module, *c.backends)); }, Uses::Backends},
    {"check-tree-sums", "Verify that backends support tree sums, which `--deterministic` requires", kPlaced, 0,
     [](Compilation &c) { return unchanged(c, checkTreeSums(c.module, *c.backends)); }, Uses::Backends},
    {"assign-layouts", "Choose layouts from the proposals of the backends", kPlaced, kLayouts,
     [](Compilation &c) { return assignLayouts(c.module, *c.backends); }, Uses::Backends},
    {"derive-states", "Replace values that depend only on weights with derived states", kPlaced | kLayouts, 0,
     [](Compilation &c) {
       deriveStates(c.module, /*mayGrow=*/c.inputs.memoryLimits.empty());
       return success();
     }},
    {"fuse-kernels", "Fuse ops into kernels", kPlaced | kLayouts, kKernels,
     [](Compilation &c) {
       fuseKernels(c.module, *c.backends, c.options.fuse, c.inputs.fusions);
       return success();
     },
     Uses::Backends},
    {"settle-loops", "Give each loop-carried value one buffer", kPlaced | kKernels, kOneBuffer, always<settleLoops>},
    {"prepare-kernels", "Compile kernels with the backends, and launch them as functions",
     kPlaced | kLayouts | kKernels | kOneBuffer, kLaunches,
     [](Compilation &c) { return prepareKernels(c.module, *c.backends, c.inputs.prepared, c.shared.get()); },
     Uses::Backends, kPlaced | kSupported | kKernels},
    {"schedule-actions", "Assign a queue, a position and waits to every kernel and copy", kLaunches, kScheduled,
     scheduleActions, Uses::Backends},
    {"plan-memory", "Assign an arena and an offset to every buffer", kScheduled, kMemory,
     [](Compilation &c) {
       planMemory(c.module, c.backends->target(), c.inputs.reuseMemory);
       return success();
     },
     Uses::Backends},
    {"plan-waits", "Add the waits that memory reuse requires", kScheduled | kMemory, kWaits,
     [](Compilation &c) {
       planWaits(c.module, c.backends->target());
       return success();
     },
     Uses::Backends},
    {"verify-plan", "Verify that waits keep every buffer until its last use", kMemory | kWaits, 0,
     [](Compilation &c) { return unchanged(c, verifyPlan(c.module, c.backends->target())); }, Uses::Backends},
    {"check-limits", "Verify the memory limits of devices", kMemory | kWaits, 0,
     [](Compilation &c) { return unchanged(c, checkLimits(c)); }, Uses::Compilation},
    {"read-initial-values", "Read the initial data of states from files", kWaits, 0, readInitialValues,
     Uses::Compilation},
    {"lower-kernels", "Compile the code of all kernels with the backends", kWaits, 0,
     [](Compilation &c) { return unchanged(c, lowerKernels(c)); }, Uses::Compilation},
    {"build-artifact", "Build the plan, and the object with the plan and the code of devices", kWaits, 0,
     [](Compilation &c) { return unchanged(c, buildArtifact(c)); }, Uses::Compilation},
    {"forecast-replicas", "Predict the communication of replicas", kWaits, 0,
     [](Compilation &c) {
       forecastReplicas(c);
       return unchanged(c, success());
     },
     Uses::Compilation},
};

//===- phases -----------------------------------------------------------------------------------------------------===//

static bool isPromoted(const Compilation &c) { return promotesToF64(c.options); }
static bool quantizesWeights(const Compilation &c) { return c.options.weights_type == kQ8; }
static bool narrowsWeights(const Compilation &c) { return !c.options.weights_type.empty() && !quantizesWeights(c); }
static bool isFunctional(const Compilation &c) { return ir::getModel(c.module).getFunctional(); }
static bool isSharing(const Compilation &c) { return ir::sharesRows(c.module); }
/// `choose-devices` also finds the costs.
static bool findsCosts(const Compilation &c) {
  return c.services.costsOf && !c.result.costs && (ir::getReplicas(c.module) != 1 || c.inputs.compileFrom == "chosen");
}
static bool choosesBuckets(const Compilation &c) {
  return isSharing(c) && c.services.costsOf && choosesShardBuckets(c.module, c.options, c.inputs);
}
static bool readsValues(const Compilation &c) { return bool(c.services.readInitialValues); }
static bool bucketsShards(const Compilation &c) {
  return isSharing(c) && ir::getModel(c.module).getZero() > 0 && bucketPolicyOf(c.options) != BucketPolicy::Each &&
         c.shardBuckets > 0;
}
static bool hasLimits(const Compilation &c) { return !c.inputs.memoryLimits.empty(); }
static bool forecasts(const Compilation &c) { return c.result.costs && ir::getReplicas(c.module) != 1; }
static bool wasExpanded(const Compilation &c) { return c.wasExpanded; }
static bool choosesDevices(const Compilation &c) { return bool(c.services.chooseDevices); }

static constexpr StringLiteral kWithShares = "with several shares", kWithShards = "with sharded optimizer states";

static constexpr Step kModel[] = {{"promote-to-f64", isPromoted, "if requested"}, {"record-options"}};
// Canonicalized before differentiation, so that gradients are those of the canonical forms.
static constexpr Step kTrain[] = {{"keep-variables"},
                                  {"canonicalize"},
                                  {"mix-precision"},
                                  {"build-entry-points"},
                                  {"lower-scans"},
                                  {"lower-branches"},
                                  {"expand-composites"},
                                  {"narrow-weights", narrowsWeights, "with `--weights-type f16` or `bf16`"},
                                  {"quantize-weights", quantizesWeights, "with `--weights-type q8_0`"},
                                  {"simplify"},
                                  {"functional-states", isFunctional, "in functional models"}};
static constexpr Step kChosen[] = {{"choose-devices"}};
// Composites are expanded a second time for each replica's ops on its local rows.
static constexpr Step kParallel[] = {{"find-costs", choosesBuckets, kWithShards},
                                     {"choose-shard-buckets", choosesBuckets, kWithShards},
                                     {"carry-rows"},
                                     {"partition-rows", isSharing, kWithShares},
                                     {"cut-microbatches", isSharing, kWithShares},
                                     {"shard-optimizer", isSharing, kWithShares},
                                     {"expand-composites", isSharing, kWithShares},
                                     {"simplify", isSharing, kWithShares},
                                     {"merge-collectives", isSharing, kWithShares},
                                     {"name-collectives", isSharing, kWithShares},
                                     {"narrow-gradients", isSharing, kWithShares},
                                     {"bucket-shards", bucketsShards, kWithShards}};
static constexpr Step kPlacedSteps[] = {{"place-values"}};
static constexpr Step kCopied[] = {
    {"deduplicate-copies"}, {"expand-missing"}, {"simplify", wasExpanded, "if ops were expanded"}, {"verify-placed"}};
static constexpr Step kFused[] = {{"check-support"}, {"check-tree-sums"}, {"assign-layouts"},
                                  {"derive-states"}, {"fuse-kernels"},    {"verify-placed"}};
static constexpr Step kScheduledSteps[] = {
    {"settle-loops"},
    {"prepare-kernels"},
    {"find-costs", findsCosts, "with several replicas, or after a dump of `chosen`"},
    {"schedule-actions"}};
static constexpr Step kPlanned[] = {{"plan-memory"},
                                    {"plan-waits"},
                                    {"verify-plan"},
                                    {"check-limits", hasLimits, "with limits in `--devices` and no `--placement`"}};
static constexpr Step kLowered[] = {{"read-initial-values", readsValues, "in `sluice compile`"},
                                    {"lower-kernels"},
                                    {"build-artifact"},
                                    {"forecast-replicas", forecasts, "with several replicas"}};

static const Phase kPhases[] = {
    {"model", "the user's graph; types are inferred", kModel, true},
    {"train", "entry points of ordinary ops, with gradients and updates; loops instead of scans and branches", kTrain,
     true},
    {"chosen", "ops and states carry the devices that the compiler chose", kChosen, true, choosesDevices},
    {"parallel", "the program of one replica; each sum over rows that must be whole is reduced", kParallel},
    {"placed", "each value has a device, and each op only reads values on its device", kPlacedSteps},
    {"copied", "one copy per value and destination, with its size and its time", kCopied},
    {"fused", "each value has a layout; each op is in a kernel, and a kernel is one launch", kFused, true},
    {"scheduled", "each action has a queue, a position and waits", kScheduledSteps},
    {"planned", "each buffer has an arena and an offset; the waits protect all buffers", kPlanned},
    {"lowered", "objects and the plan exist; the IR is unchanged", kLowered},
};

ArrayRef<Pass> allPasses() { return kPasses; }
ArrayRef<Phase> allPhases() { return kPhases; }
ArrayRef<Invariant> allInvariants() { return kInvariants; }

const Pass *findPass(StringRef name) {
  const Pass *found = llvm::find_if(kPasses, [&](const Pass &pass) { return pass.name == name; });
  return found == std::end(kPasses) ? nullptr : found;
}

std::optional<size_t> findPhase(StringRef name) {
  const Phase *found = llvm::find_if(kPhases, [&](const Phase &phase) { return phase.name == name; });
  return found == std::end(kPhases) ? std::nullopt : std::optional(size_t(found - kPhases));
}

Invariants invariantsAfter(size_t phase) {
  Invariants all = 0;
  for (const Phase &earlier : allPhases().take_front(phase + 1))
    for (const Step &step : earlier.steps)
      all = (all & ~findPass(step.pass)->ends) | findPass(step.pass)->establishes;
  return all;
}

LogicalResult verifyInvariants(Compilation &compilation, Invariants invariants) {
  for (const Invariant &invariant : kInvariants)
    if ((invariants & invariant.bit) && invariant.verify && failed(invariant.verify(compilation)))
      return failure();
  return success();
}

//===- description ------------------------------------------------------------------------------------------------===//

static std::string namesOf(Invariants set) {
  SmallVector<StringRef> names;
  for (const Invariant &invariant : kInvariants)
    if (set & invariant.bit)
      names.push_back(invariant.name);
  return llvm::join(names, ", ");
}

std::string describePhases() {
  std::string text = "| phase | passes, in order | afterwards |\n|---|---|---|\n";
  llvm::raw_string_ostream os(text);
  for (const Phase &phase : kPhases) {
    os << "| [" << phase.name << "](#" << phase.name << ") | ";
    StringRef condition;
    for (const Step &step : phase.steps) {
      bool isOther = step.condition != condition;
      if (&step != phase.steps.begin())
        os << (isOther ? "; " : ", ");
      if (isOther && !step.condition.empty())
        os << step.condition << ": ";
      condition = step.condition;
      os << '`' << step.pass << '`';
    }
    os << " | " << phase.result << (phase.isNeeded ? "; only with `--placement`" : "") << " |\n";
  }
  os << "\n| pass | effect | needs | establishes | ends |\n|---|---|---|---|---|\n";
  for (const Pass &pass : kPasses)
    os << "| `" << pass.name << "` | " << pass.summary << " | " << namesOf(pass.needs) << " | "
       << namesOf(pass.establishes) << " | " << namesOf(pass.ends) << " |\n";
  os << "\n| invariant | meaning | verified |\n|---|---|---|\n";
  for (const Invariant &invariant : kInvariants)
    os << "| " << invariant.name << " | " << invariant.text << " | " << (invariant.verify ? "yes" : "no") << " |\n";
  return text;
}

} // namespace sluice::passes
