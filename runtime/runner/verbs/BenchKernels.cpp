// `bench --kernels`: each kernel's time, with the minimum time for its work on this machine.
#include "runtime/base/Text.h"
#include "runtime/instance/ActionTimes.h"
#include "runtime/runner/machine/Machine.h"
#include "runtime/runner/verbs/Verbs.h"

#include <algorithm>

namespace sluice::runtime {

/// The share of the f32 peak that the model's type reaches. Kernels do not record their element type, so the type of
/// the first parameter decides.
static double peakShare(const Plan &plan) {
  auto isParameter = [](const State &state) { return state.kind == StateKind::parameter; };
  auto parameter = std::find_if(plan.states.begin(), plan.states.end(), isParameter);
  return parameter != plan.states.end() && parameter->dtype == DType::f64 ? 0.5 : 1;
}

/// One line of the table, for all launches of a kernel in a call. The bound is the larger of two times: the operations
/// at the peak for the kernel's lanes, and the bytes at the bandwidth of the smallest cache that holds them.
static Json describe(const Plan &plan, const Launch &first, int64_t count, double seconds, int64_t rows,
                     const MachinePeak &peak) {
  const Kernel &kernel = plan.kernels[first.kernel];
  auto launches = static_cast<double>(count);
  double flops = kernel.cost.flopsFor(rows) * launches;
  double bytes = kernel.cost.bytesFor(rows) * launches;
  double reachable = peak.flopsPerSecond * (kernel.lanes > 0 ? kernel.lanes : 1);
  double compute = flops / reachable, memory = bytes / peak.bandwidth.at(bytes / launches);
  double bound = std::max(compute, memory);
  Json line;
  line["name"] = kernel.name;
  line["kind"] = kernel.kind;
  line["launches"] = count;
  line["source"] = first.source;
  line["ms"] = seconds * 1e3;
  line["gflops"] = flops / seconds * 1e-9;
  line["gbps"] = bytes / seconds * 1e-9;
  line["bound"] = bound * 1e3;
  line["bound_by"] = compute >= memory ? "compute" : "memory";
  line["share"] = bound / seconds;
  return line;
}

Json benchKernels(Instance &instance, const Entry &entry, int64_t rows, double seconds) {
  const Plan &plan = instance.plan();
  MachinePeak peak = measureMachine(instance.team(), plan.build.vectorBits);
  peak.flopsPerSecond *= peakShare(plan);
  std::vector<std::vector<double>> steps;
  instance.team().enter([&] { steps = timeActions(instance, entry, rows, {20, 2000, seconds}); });
  Json result;
  result["machine"]["peak_gflops"] = peak.flopsPerSecond * 1e-9;
  result["machine"]["read_gbps"] = peak.bandwidth.ofMemory() * 1e-9;
  for (const Bandwidth::Point &point : peak.bandwidth.points())
    result["machine"]["bandwidth"].push_back({{"bytes", point.bytes}, {"gbps", point.bytesPerSecond * 1e-9}});
  result["machine"]["vector"] = peak.vector;
  result["kernels"] = Json::array();
  std::vector<ListedAction> actions = plan.actionsOf(entry, plan.microbatchesFor(entry, rows));
  for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel) {
    std::vector<double> times(steps.size());
    const Launch *first = nullptr;
    int64_t launches = 0;
    for (size_t i = 0; i < actions.size(); ++i) {
      const Launch *launch = actions[i].action->launch();
      if (!launch || launch->kernel != kernel)
        continue;
      first = first ? first : launch;
      launches += actions[i].times;
      for (size_t step = 0; step < steps.size(); ++step)
        times[step] += steps[step][i] * static_cast<double>(actions[i].times);
    }
    if (first)
      result["kernels"].push_back(describe(plan, *first, launches, std::max(medianOf(times), 1e-9),
                                           entry.parts.empty() ? rows : std::min(rows, plan.capacity), peak));
  }
  return result;
}

} // namespace sluice::runtime
