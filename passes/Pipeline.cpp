// The compiler read top to bottom.
#include "passes/Pipeline.h"
#include "ir/Dialect.h"
#include "mlir/IR/Verifier.h"
#include "passes/Artifact.h"
#include "passes/Backend.h"
#include "passes/Dump.h"
#include "passes/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include <chrono>

using namespace mlir;

namespace sluice::passes {

namespace {

/// What the phases share.
struct Compilation {
  ModuleOp module;
  const PipelineOptions &options;
  std::unique_ptr<Backend> backend;
  Lowered result;
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
    c.module->setAttr(ir::kCapacityAttr, IntegerAttr::get(IntegerType::get(c.module.getContext(), 64), c.options.capacity));
  return success();
}

static LogicalResult runTrain(Compilation &c) {
  splitGroupedConvolutions(c.module);
  if (failed(buildEntryPoints(c.module)))
    return failure();
  expandComposites(c.module);
  return simplify(c.module);
}

static LogicalResult runParallel(Compilation &) { return success(); }

static LogicalResult runPlaced(Compilation &c) {
  placeValues(c.module, "cpu");
  return success();
}

static LogicalResult runCopied(Compilation &c) { return verifyPlaced(c.module); }

static LogicalResult runFused(Compilation &c) {
  if (failed(assignLayouts(c.module, *c.backend)) || failed(fuseKernels(c.module, c.options.fuse)))
    return failure();
  return success();
}

static LogicalResult runScheduled(Compilation &c) {
  scheduleKernels(c.module);
  return prepareKernels(c.module, *c.backend);
}

static LogicalResult runPlanned(Compilation &c) { return planMemory(c.module, c.options.reuseMemory); }

static LogicalResult runLowered(Compilation &c) {
  FailureOr<sluice_blob> object = c.backend->lower(c.module.getLoc());
  if (failed(object))
    return failure();
  Plan plan = writePlan(c.module, c.backend->describe());
  llvm::Expected<std::string> artifact = emitArtifact(plan);
  if (!artifact)
    return c.module.emitError(llvm::toString(artifact.takeError()));
  c.result = {{std::string(static_cast<const char *>(object->data), object->bytes), std::move(*artifact)}, std::move(plan)};
  return success();
}

static constexpr Phase kPhases[] = {{"model", runModel}, {"train", runTrain}, {"parallel", runParallel}, {"placed", runPlaced}, {"copied", runCopied},
                                    {"fused", runFused}, {"scheduled", runScheduled}, {"planned", runPlanned}, {"lowered", runLowered}};

ArrayRef<StringRef> phaseNames() {
  static const SmallVector<StringRef> names = llvm::map_to_vector(kPhases, [](const Phase &phase) { return phase.name; });
  return names;
}

static FailureOr<size_t> findPhase(ModuleOp module, StringRef name) {
  auto it = llvm::find(phaseNames(), name);
  if (it == phaseNames().end())
    return module.emitError("there is no phase '") << name << "'; the phases are " << llvm::join(phaseNames(), ", ");
  return it - phaseNames().begin();
}

static LogicalResult beginBackend(Compilation &c) {
  auto capacity = c.module->getAttrOfType<IntegerAttr>(ir::kCapacityAttr);
  sluice_target_options target{sizeof(target), c.options.cpu.c_str(), capacity ? capacity.getInt() : 0, nullptr};
  c.backend = Backend::create(*c.options.backend, target, c.module.getLoc());
  return success(c.backend != nullptr);
}

static LogicalResult runPhase(const Phase &phase, Compilation &c) {
  auto start = std::chrono::steady_clock::now();
  if (failed(phase.run(c)) || failed(verify(c.module)))
    return failure();
  c.module->setAttr(ir::kPhaseAttr, StringAttr::get(c.module.getContext(), phase.name));
  if (c.options.progress)
    c.options.progress(phase.name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return success();
}

FailureOr<Lowered> runPipeline(ModuleOp module, const PipelineOptions &options) {
  FailureOr<size_t> from = findPhase(module, options.compileFrom), to = findPhase(module, options.compileTo);
  if (failed(from) || failed(to))
    return failure();
  Compilation c{module, options, nullptr, {}};
  Dump dump(options.dumpIrDir);
  // `model` runs even when resumed from: it applies the options; the other phases begin after the one given.
  for (size_t i = *from == 0 ? 0 : *from + 1; i <= *to; ++i) {
    if (kPhases[i].name == "fused" || (!c.backend && i > *from && StringRef(kPhases[i].name) == "scheduled"))
      if (failed(beginBackend(c)))
        return failure();
    if (failed(runPhase(kPhases[i], c)) || failed(dump.write(module, i + 1, kPhases[i].name)))
      return failure();
  }
  if (failed(dump.finish(module)))
    return failure();
  return std::move(c.result);
}

} // namespace sluice::passes
