#include "tools/compiler/scale/ReplicaStep.h"

#include "tools/compiler/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <numeric>
#include <tuple>

namespace sluice::compiler {

static constexpr const char *kTrainStep = "train_step";

double StepKernel::seconds(const passes::CostModel &costs, int64_t rows) const {
  return double(times) * costs.kernelSeconds(device, kind, cost.flopsFor(rows), cost.bytesFor(rows));
}

int64_t ReplicaStep::launches() const {
  return std::accumulate(kernels.begin(), kernels.end(), int64_t(0),
                         [](int64_t sum, const StepKernel &kernel) { return sum + kernel.times; });
}

double ReplicaStep::parameters() const {
  return std::accumulate(gradients.begin(), gradients.end(), 0.0,
                         [](double sum, const Gradient &gradient) { return sum + gradient.elements; });
}

/// Records the gradients that an action consumes, at `done` seconds from the start of the step's work.
static void noteGradients(const runtime::Plan &plan, const runtime::Action &action, double done,
                          std::vector<Gradient> &gradients) {
  for (const runtime::State &state : plan.states) {
    if (state.kind != runtime::StateKind::parameter || !plan.writes(action, state.slot, state.bytes))
      continue;
    auto known = llvm::find_if(gradients, [&](const Gradient &gradient) { return gradient.name == state.name; });
    if (known == gradients.end())
      gradients.push_back({state.name, double(state.elements()), done});
    else
      known->ready = done; // written in several parts
  }
}

llvm::Expected<ReplicaStep> replicaStepOf(const runtime::Plan &plan, const passes::CostModel &costs) {
  const runtime::Entry *entry = plan.findEntry(kTrainStep);
  if (!entry)
    return makeError(ExitCode::Usage, plan.model + " has no train_step to replicate; its entry points are " +
                                          llvm::join(plan.entryNames(), ", "));
  ReplicaStep step;
  step.model = plan.model;
  step.entry = entry->name;
  step.rows = plan.capacity;
  double done = 0;
  for (auto [action, times] : plan.actionsOf(*entry, plan.microbatches)) {
    const runtime::Launch *launch = action->launch();
    if (!launch)
      continue;
    const runtime::Kernel &kernel = plan.kernels[launch->kernel];
    step.kernels.push_back({plan.devices[kernel.device].name, kernel.kind, kernel.cost, times});
    done += step.kernels.back().seconds(costs, step.rows);
    noteGradients(plan, *action, done, step.gradients);
  }
  if (step.gradients.empty())
    return makeError(ExitCode::Usage, plan.model + " trains no parameter: replicas would have nothing to reduce");
  for (Gradient &gradient : step.gradients)
    gradient.ready = done > 0 ? gradient.ready / done : 1;
  llvm::sort(step.gradients, [](const Gradient &a, const Gradient &b) {
    return std::tie(a.ready, a.name) < std::tie(b.ready, b.name);
  });
  return step;
}

} // namespace sluice::compiler
