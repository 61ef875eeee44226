#include "passes/driver/Pipeline.h"

#include "ir/Module.h"
#include "mlir/IR/Verifier.h"
#include "passes/artifact/LowerKernels.h"
#include "passes/driver/Dump.h"
#include "passes/driver/PassTable.h"
#include "llvm/ADT/StringExtras.h"
#include <chrono>

using namespace mlir;

namespace sluice::passes {

namespace {

class Stopwatch {
public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }

private:
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

} // namespace

ArrayRef<StringRef> phaseNames() {
  static const SmallVector<StringRef> names =
      llvm::map_to_vector(allPhases(), [](const Phase &phase) -> StringRef { return phase.name; });
  return names;
}

static FailureOr<size_t> phaseNamed(ModuleOp module, StringRef name) {
  if (std::optional<size_t> found = findPhase(name))
    return *found;
  return module.emitError("there is no phase '") << name << "'; the phases are " << llvm::join(phaseNames(), ", ");
}

/// Whether a phase queries backends. `placed` is the first that does.
static bool needsBackends(size_t phase) { return phase >= *findPhase("placed"); }

/// Runs a pass, and with `verifiesEach` verifies the invariants that hold afterwards.
static LogicalResult runPass(const Phase &phase, const Pass &pass, Compilation &c, Invariants &hold) {
  assert((pass.needs & ~hold) == 0 && "an earlier pass must establish what this pass needs");
  Stopwatch time;
  c.leavesIr = false;
  if (failed(pass.run(c)))
    return failure();
  hold = (hold & ~pass.ends) | pass.establishes;
  if (c.inputs.verifiesEach && (failed(verify(c.module)) || failed(verifyInvariants(c, hold))))
    return c.module.emitError("the IR or an invariant is invalid after pass '") << pass.name << "'";
  if (c.services.afterPass)
    c.services.afterPass(c.module, phase.name, pass.name, time.seconds());
  return success();
}

static LogicalResult runPhase(const Phase &phase, Compilation &c, Invariants &hold) {
  Stopwatch time;
  bool isUnchanged = true;
  for (const Step &step : phase.steps) {
    if (step.isNeeded && !step.isNeeded(c))
      continue;
    if (failed(runPass(phase, *findPass(step.pass), c, hold)))
      return failure();
    isUnchanged &= c.leavesIr;
  }
  if (c.inputs.verifies && !isUnchanged) {
    Stopwatch verifying;
    if (failed(verify(c.module)))
      return failure();
    if (c.services.afterPass)
      c.services.afterPass(c.module, phase.name, "verify", verifying.seconds());
  }
  ir::getModel(c.module).setPhase(phase.name);
  if (c.services.afterPhase)
    c.services.afterPhase(phase.name, time.seconds());
  return success();
}

FailureOr<Lowered> runPipeline(ModuleOp module, const CompileOptions &options, const PipelineInputs &inputs,
                               const PipelineServices &services) {
  FailureOr<size_t> from = phaseNamed(module, inputs.compileFrom), to = phaseNamed(module, inputs.compileTo);
  if (failed(from) || failed(to))
    return failure();
  Compilation c{module, options, inputs, services};
  c.costs = inputs.costs;
  c.shardBuckets = inputs.shardBuckets.value_or(1);
  if (inputs.kernels && inputs.compileTo == "lowered")
    c.shared = std::make_unique<SharedKernels>(*inputs.kernels, inputs.kernelFolder, !inputs.kernelTexts.empty());
  Dump dump(options.dump_ir);
  // `model` runs even when resumed from, because it applies the options. The other phases begin after the given phase.
  size_t first = *from == 0 ? 0 : *from + 1;
  Invariants hold = *from == 0 ? 0 : invariantsAfter(*from);
  for (size_t i = first; i <= *to; ++i) {
    const Phase &phase = allPhases()[i];
    if (phase.isNeeded && !phase.isNeeded(c))
      continue;
    if (needsBackends(i) && !c.backends &&
        !(c.backends = DeviceBackends::create(module, inputs.backends, options, inputs.kernelTexts)))
      return failure();
    if (failed(runPhase(phase, c, hold)) || failed(dump.write(module, unsigned(i + 1), phase.name, c.notes)))
      return failure();
  }
  if (inputs.compileTo == "planned")
    c.result.plan = planOf(c);
  if (failed(dump.finish(module)))
    return failure();
  return std::move(c.result);
}

} // namespace sluice::passes
