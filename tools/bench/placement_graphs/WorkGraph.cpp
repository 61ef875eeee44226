#include "tools/bench/placement_graphs/WorkGraph.h"
#include <algorithm>

namespace sluice::bench {

using passes::PlacementProblem;

namespace {

/// After the launch overhead, a device computes and moves bytes at the same time.
struct DeviceSpeed {
  double flopsPerSecond, bytesPerSecond, launchSeconds;

  int64_t picoseconds(double flops, double bytes) const {
    return int64_t(1e12 * (launchSeconds + std::max(flops / flopsPerSecond, bytes / bytesPerSecond)));
  }
};

} // namespace

static constexpr DeviceSpeed kHostSpeed{3e11, 2e10, 1e-6}, kAcceleratorSpeed{6e12, 4e11, 5e-6};
static constexpr PlacementProblem::Link kLink{5000000, 1e12 / 12e9}; // 5 us, 12 GB/s

uint32_t WorkGraph::add(Group group) {
  groups.push_back(std::move(group));
  return uint32_t(groups.size() - 1);
}

PlacementProblem placementProblem(const WorkGraph &graph, uint32_t accelerators, double capShare) {
  PlacementProblem problem;
  uint32_t deviceCount = 1 + accelerators;
  std::vector<uint32_t> allOnFirst;
  for (const WorkGraph::Group &group : graph.groups) {
    double bytes = double(group.output);
    for (const std::vector<uint32_t> *operands : {&group.inputs, &group.updates})
      for (uint32_t operand : *operands)
        bytes += double(graph.groups[operand].output);
    PlacementProblem::Group placed;
    placed.times.assign(deviceCount, kAcceleratorSpeed.picoseconds(group.flops, bytes));
    placed.times[0] = int64_t(group.hostFactor * double(kHostSpeed.picoseconds(group.flops, bytes)));
    placed.memory.assign(deviceCount, group.memory);
    if (group.isOnHost)
      placed.pinned = 0;
    allOnFirst.push_back(group.isOnHost ? 0 : 1);
    problem.groups.push_back(std::move(placed));
    problem.values.push_back({uint32_t(problem.values.size()), {}, group.output, group.output});
  }
  for (uint32_t number = 0; number < graph.groups.size(); ++number)
    for (const std::vector<uint32_t> *operands : {&graph.groups[number].inputs, &graph.groups[number].updates})
      for (uint32_t operand : *operands)
        problem.values[operand].consumers.push_back(number);
  problem.links.assign(deviceCount, std::vector<PlacementProblem::Link>(deviceCount, kLink));
  problem.memoryCaps.resize(deviceCount);
  int64_t need = memoryOf(problem, allOnFirst)[1];
  for (uint32_t device = 1; device < deviceCount; ++device)
    problem.memoryCaps[device] = int64_t(capShare * double(need) / accelerators);
  return problem;
}

} // namespace sluice::bench
