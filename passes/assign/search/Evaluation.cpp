#include "passes/assign/search/Evaluation.h"

#include "ir/Module.h"
#include "runtime/plan/CopyForecast.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace sluice::passes {

static constexpr int64_t kCalls = 24; // length of a simulated run, whose second half counts

static double secondsOf(const runtime::Collective &collective, const runtime::Plan &plan, const CostModel &costs) {
  auto kind = ir::symbolizeCollectiveKind(runtime::Collective::kindNames[size_t(collective.kind)]);
  assert(kind && "the compiler makes no other collectives");
  int64_t replicas = plan.replicas == ir::kReplicasOfLaunch ? ir::kPlannedReplicas : plan.replicas;
  return costs.collectiveSeconds(plan.devices[plan.deviceOf(collective.send.slot)].name, *kind,
                                 double(collective.bytesFor(replicas)), replicas);
}

static double secondsOf(const runtime::Action &action, const runtime::Plan &plan, const CostModel &costs) {
  int64_t rows = plan.capacity;
  auto nameOf = [&](const runtime::Slot &slot) -> const std::string & {
    return plan.devices[plan.deviceOf(slot)].name;
  };
  if (const runtime::Collective *collective = action.collective())
    return secondsOf(*collective, plan, costs);
  double longest = 0; // of copies that run at once
  for (const runtime::Copy &copy : action.copies())
    longest = std::max(longest, costs.copySeconds(nameOf(copy.from), nameOf(copy.to), double(copy.bytesFor(rows))));
  if (!action.launch())
    return longest;
  const runtime::Kernel &kernel = plan.kernels[action.launch()->kernel];
  return costs.kernelSeconds(plan.devices[kernel.device].name, kernel.kind, kernel.cost.flopsFor(rows),
                             kernel.cost.bytesFor(rows));
}

std::vector<double> workSeconds(const runtime::Entry &entry, const runtime::Plan &plan, const CostModel &costs) {
  llvm::SmallPtrSet<const runtime::Copy *, 32> recurs;
  for (const runtime::CopyOfCall &recurring : runtime::copiesPerCall(plan, entry, plan.microbatches))
    recurs.insert(recurring.copy);
  std::vector<double> seconds;
  for (auto [action, times] : plan.actionsOf(entry, plan.microbatches))
    seconds.push_back(!action->copy() || recurs.contains(action->copy()) ? secondsOf(*action, plan, costs) : 0);
  return seconds;
}

std::optional<Evaluation> evaluate(ModuleOp module, CompileOptions options, PipelineInputs inputs,
                                   llvm::StringRef entry, bool hostRunsHere, Obstacle &obstacle) {
  inputs.compileFrom = "train";
  inputs.compileTo = "planned";
  inputs.verifies = inputs.verifiesEach = false; // the IR is discarded
  options.dump_ir.clear();
  inputs.kernelTexts.clear();
  inputs.memoryLimits.clear();                         // the search compares the peaks
  ir::DiagnosticText diagnostics(module.getContext()); // warnings are reported when the chosen placement is compiled
  FailureOr<Lowered> planned = runPipeline(module, options, inputs);
  if (failed(planned)) {
    obstacle = obstacleOf(diagnostics);
    return std::nullopt;
  }

  Evaluation result;
  result.plan = std::move(planned->plan);
  const runtime::Entry *found = result.plan.findEntry(entry.str());
  result.entry = size_t(found - result.plan.entries.data());
  result.workSeconds = workSeconds(*found, result.plan, inputs.costs);
  runtime::CallModel model(result.plan, *found, result.plan.microbatches,
                           [&](size_t queue) { return hostRunsHere && result.plan.queues[queue].device == 0; });
  runtime::CallModel::Prediction prediction = model.predict(result.workSeconds, kCalls);
  result.seconds = prediction.seconds;
  result.serialSeconds = model.serialSeconds(result.workSeconds);
  result.timeline = std::move(prediction.lastCall);
  for (size_t device = 0; device < result.plan.devices.size(); ++device)
    result.peakBytes.push_back(result.plan.peakBytes(device));
  return result;
}

} // namespace sluice::passes
