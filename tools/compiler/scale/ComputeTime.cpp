#include "tools/compiler/scale/ComputeTime.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <fmt/format.h>

namespace sluice::compiler {

std::function<double(int64_t rows)> timeThrough(std::vector<TimedRows> points, double fixedSeconds) {
  llvm::sort(points, [](const TimedRows &a, const TimedRows &b) { return a.rows < b.rows; });
  if (points.size() == 1)
    points.insert(points.begin(), {0, std::min(fixedSeconds, points.front().seconds)});
  return [points](int64_t rows) {
    size_t next = 1;
    while (next + 1 < points.size() && points[next].rows < rows)
      ++next;
    const TimedRows &low = points[next - 1], &high = points[next];
    double perRow = (high.seconds - low.seconds) / double(high.rows - low.rows);
    double seconds = low.seconds + perRow * double(rows - low.rows);
    // Superlinear growth and shrinking times are not extrapolated.
    double least = rows <= low.rows ? low.seconds * double(rows) / double(std::max<int64_t>(low.rows, 1)) : low.seconds;
    return std::max(seconds, least);
  };
}

static ComputeTime describedTime(const ReplicaStep &step, const ClusterDevice &device) {
  auto seconds = [kernels = step.kernels, device](int64_t rows) {
    double total = 0;
    for (const StepKernel &kernel : kernels)
      total += double(kernel.times) *
               std::max({device.kernelSeconds, kernel.cost.flopsFor(rows) / (device.peakFlops * device.efficiency),
                         kernel.cost.bytesFor(rows) / device.memoryBytesPerSecond});
    return total;
  };
  return {fmt::format("{} launches at the rates of the cluster's file", step.launches()), seconds};
}

static ComputeTime compiledTime(const ReplicaStep &step, const passes::CostModel &costs) {
  auto seconds = [kernels = step.kernels, costs](int64_t rows) {
    double total = 0;
    for (const StepKernel &kernel : kernels)
      total += kernel.seconds(costs, rows);
    return total;
  };
  return {fmt::format("{} launches at the rates of the devices compiled for", step.launches()), seconds};
}

ComputeTime computeTimeOf(const ReplicaStep &step, const Cluster &cluster, const passes::CostModel &compiled) {
  std::vector<TimedRows> points;
  for (const MeasuredStep &measured : cluster.device.measured)
    if (measured.model == step.model)
      points.push_back({measured.rows, measured.seconds});
  if (!points.empty())
    return {fmt::format("measured with {} batch{}", points.size(), points.size() == 1 ? "" : "es"),
            timeThrough(points, double(step.launches()) * cluster.device.kernelSeconds)};
  return cluster.device.isDescribed() ? describedTime(step, cluster.device) : compiledTime(step, compiled);
}

} // namespace sluice::compiler
