// The whole compiler, top to bottom.
#include "passes/Pipeline.h"
#include "ir/Module.h"
#include "mlir/IR/Verifier.h"
#include "passes/Dump.h"
#include "passes/Passes.h"
#include "passes/backend/DeviceBackends.h"
#include "llvm/ADT/StringExtras.h"
#include <chrono>

using namespace mlir;

namespace sluice::passes {

namespace {

/// State shared by the phases.
struct Compilation {
  ModuleOp module;
  const PipelineOptions &options;
  std::unique_ptr<DeviceBackends> backends;
  Lowered result;
  std::vector<std::string> notes; ///< results of the phase that are not in the IR, for its dump
  bool leavesIr = false;          ///< whether the phase left the IR unchanged, which is then verified already
};

struct Phase {
  StringRef name;
  LogicalResult (*run)(Compilation &);
};

} // namespace

static LogicalResult runModel(Compilation &c) {
  if (c.options.promoteF64)
    promoteToF64(c.module);
  if (c.options.capacity)
    ir::getModel(c.module).setCapacity(uint64_t(c.options.capacity));
  if (c.options.precision)
    ir::setPrecision(c.module, *c.options.precision);
  return success();
}

static LogicalResult runTrain(Compilation &c) {
  keepVariables(c.module);
  // Before differentiation, so that gradients are those of the canonical forms.
  if (failed(canonicalize(c.module)))
    return failure();
  mixPrecision(c.module);
  if (failed(buildEntryPoints(c.module)))
    return failure();
  lowerScans(c.module);
  lowerBranches(c.module);
  expandComposites(c.module);
  return simplify(c.module);
}

static LogicalResult runParallel(Compilation &c) {
  c.leavesIr = !carryRows(c.module) && !ir::sharesRows(c.module);
  if (!ir::sharesRows(c.module))
    return success();
  if (failed(partitionRows(c.module)) || failed(cutMicrobatches(c.module)) || failed(shardOptimizer(c.module)))
    return failure();
  expandComposites(c.module); // each replica's ops on its local rows
  if (failed(simplify(c.module)))
    return failure();
  mergeCollectives(c.module);
  nameCollectives(c.module);
  narrowGradients(c.module);
  if (c.options.buckets != BucketPolicy::Each && c.options.shardBuckets > 0)
    bucketShards(c.module, c.options.shardBuckets);
  return success();
}

static LogicalResult runPlaced(Compilation &c) {
  const ChosenDevices &chosen = c.options.chosen;
  if (failed(placeValues(c.module, c.backends.get(), chosen)))
    return failure();
  hoistConditions(c.module);
  return insertCopies(c.module, c.backends.get(), chosen);
}

static LogicalResult runCopied(Compilation &c) {
  deduplicateCopies(c.module);
  if (expandMissing(c.module, *c.backends) && failed(simplify(c.module)))
    return failure();
  return verifyPlaced(c.module);
}

static LogicalResult runFused(Compilation &c) {
  if (failed(checkSupport(c.module, *c.backends)) || failed(assignLayouts(c.module, *c.backends)))
    return failure();
  fuseKernels(c.module, *c.backends, c.options.fuse);
  return verifyPlaced(c.module);
}

static LogicalResult runScheduled(Compilation &c) {
  settleLoops(c.module);
  if (failed(prepareKernels(c.module, *c.backends, c.options.prepared)))
    return failure();
  scheduleActions(c.module, c.backends->target(), c.options.costs, c.options.buckets);
  return success();
}

static LogicalResult runPlanned(Compilation &c) {
  planMemory(c.module, c.backends->target(), c.options.reuseMemory);
  planWaits(c.module, c.backends->target());
  return verifyPlan(c.module, c.backends->target());
}

/// Adds a backend's code: host objects to the linker's inputs, device code to the artifact's sections.
static LogicalResult addCode(Compilation &c, Backend &backend, std::vector<DeviceCode> &code) {
  FailureOr<sluice_blob> blob = backend.lower(c.module.getLoc());
  if (failed(blob))
    return failure();
  llvm::append_range(c.result.functions, backend.needsIn(*blob));
  std::string bytes(static_cast<const char *>(blob->data), blob->bytes);
  if (blob->kind == SLUICE_BLOB_HOST_OBJECT)
    c.result.objects.push_back(std::move(bytes));
  else if (blob->kind == SLUICE_BLOB_DEVICE)
    code.push_back({backend.name().str(), std::move(bytes)});
  return success();
}

/// The link of the devices that hold unplaced values: if a replica link is given, it is the same for all devices.
static std::optional<runtime::GivenLink> givenReplicaLink(const Compilation &c) {
  StringRef device = c.backends->target().first().name;
  const LinkCosts &link = c.options.costs.link(device, device);
  if (!ir::isReplicated(c.module) || link.source != CostSource::Given)
    return std::nullopt;
  return runtime::GivenLink{link.bytesPerSecond, link.latency};
}

static BuiltPlan planOf(Compilation &c, ArrayRef<DeviceCode> code) {
  return buildPlan(c.module, {c.backends->target(), c.backends->of(ir::kHostDevice).describe(), c.options.backendFolder,
                              c.options.dataPath, code, c.options.settings, givenReplicaLink(c), &c.options.values});
}

/// The parts of the artifact. The IR is that of phase `planned`.
static void noteArtifact(Compilation &c, ArrayRef<DeviceCode> code, const std::string &artifact) {
  auto note = [&](const Twine &text) { c.notes.push_back(text.str()); };
  note("Lowering leaves the IR as it is, and makes:");
  for (const std::string &object : c.result.objects)
    note("  an object of " + Twine(object.size()) + " bytes with the kernels of the host");
  for (const DeviceCode &device : code)
    note("  " + Twine(device.blob.size()) + " bytes of code for backend '" + device.backend + "'");
  for (const FunctionNeeds &needs : c.result.functions)
    note("    " + needs.function + ": " + Twine(needs.registers) + " registers per thread, " +
         Twine(needs.sharedBytes) + " bytes of shared memory, " + Twine(needs.spilledBytes) + " bytes spilled");
  note("  an object of " + Twine(artifact.size()) + " bytes with the plan and the code of devices");
}

static LogicalResult runLowered(Compilation &c) {
  c.leavesIr = true;
  std::vector<DeviceCode> code;
  for (const std::unique_ptr<Backend> &backend : c.backends->sessions())
    if (failed(addCode(c, *backend, code)))
      return failure();
  BuiltPlan built = planOf(c, code);
  llvm::Expected<std::string> artifact = emitArtifact(built, code, c.options.values.constants, c.options.variant);
  if (!artifact)
    return c.module.emitError(llvm::toString(artifact.takeError()));
  noteArtifact(c, code, *artifact);
  c.result.objects.push_back(std::move(*artifact));
  c.result.plan = std::move(built.plan);
  return success();
}

static constexpr Phase kPhases[] = {{"model", runModel},         {"train", runTrain},     {"parallel", runParallel},
                                    {"placed", runPlaced},       {"copied", runCopied},   {"fused", runFused},
                                    {"scheduled", runScheduled}, {"planned", runPlanned}, {"lowered", runLowered}};

ArrayRef<StringRef> phaseNames() {
  static const SmallVector<StringRef> names =
      llvm::map_to_vector(kPhases, [](const Phase &phase) { return phase.name; });
  return names;
}

static FailureOr<size_t> findPhase(ModuleOp module, StringRef name) {
  auto it = llvm::find(phaseNames(), name);
  if (it == phaseNames().end())
    return module.emitError("there is no phase '") << name << "'; the phases are " << llvm::join(phaseNames(), ", ");
  return it - phaseNames().begin();
}

/// The first phase that queries backends, and the phase after `fused` for a module that is resumed there.
static bool needsBackends(const Phase &phase) { return phase.name == "placed" || phase.name == "scheduled"; }

static LogicalResult runPhase(const Phase &phase, Compilation &c) {
  auto start = std::chrono::steady_clock::now();
  c.leavesIr = false;
  if (failed(phase.run(c)) || (c.options.verifies && !c.leavesIr && failed(verify(c.module))))
    return failure();
  ir::getModel(c.module).setPhase(phase.name);
  if (c.options.progress)
    c.options.progress(phase.name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return success();
}

FailureOr<Lowered> runPipeline(ModuleOp module, const PipelineOptions &options) {
  FailureOr<size_t> from = findPhase(module, options.compileFrom), to = findPhase(module, options.compileTo);
  if (failed(from) || failed(to))
    return failure();
  Compilation c{module, options, nullptr, {}, {}, false};
  Dump dump(options.dumpIrDir);
  // `model` runs even when resumed from, because it applies the options. The other phases begin after the given phase.
  for (size_t i = *from == 0 ? 0 : *from + 1; i <= *to; ++i) {
    if (needsBackends(kPhases[i]) && !c.backends &&
        !(c.backends =
              DeviceBackends::create(module, options.backends, options.cpu, options.settings, options.temporaries)))
      return failure();
    if (failed(runPhase(kPhases[i], c)) || failed(dump.write(module, i + 1, kPhases[i].name, c.notes)))
      return failure();
  }
  if (kPhases[*to].name == "planned")
    c.result.plan = planOf(c, /*code=*/{}).plan;
  if (failed(dump.finish(module)))
    return failure();
  return std::move(c.result);
}

} // namespace sluice::passes
