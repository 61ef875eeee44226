// What an assignment of a placement graph's groups to devices comes to, without compiling it: the time from one call to
// the next, and the memory of each device.
//
// The assignment becomes the launches and copies that the compiler would make of it. Their order, their places in
// memory and their waits are found by what the phases `scheduled` and `planned` use, and followed by the schedule model
// that predicts plans. So figures are those of the plan, as far as its kernels are the graph's groups: layouts are
// chosen later, so what relayouts and the padding of layouts take is not in them, nor how ops are expanded, the
// workspaces of kernels that nobody has told of (`setKernel`), constants that must be copied, the memory of other entry
// points, of states that this one does not use and of logs.
#pragma once

#include "passes/assign/AssignedCall.h"

namespace sluice::passes {

struct AssignmentFigures {
  double seconds = 0;          ///< from one call's end to the next one's
  std::vector<int64_t> memory; ///< of each device, bytes
};

class AssignmentModel {
public:
  /// `hostRunsHere`: the thread that issues work also does the host's. The graph must outlive the model.
  AssignmentModel(const PlacementGraph &graph, const ir::Target &target, const CostModel &model, bool hostRunsHere);

  /// What is known of a group's kernel on a device: its time alone, and the bytes beside what it reads and leaves.
  void setKernel(uint32_t group, uint32_t device, double seconds, int64_t workspaceBytes);

  /// The figures of an assignment in which each group is where it can run.
  AssignmentFigures judge(const std::vector<uint32_t> &devices) const;

  double kernelSeconds(uint32_t group, uint32_t device) const { return costs.kernels[group][device].seconds; }

private:
  const PlacementGraph &graph;
  AssignmentCosts costs;
  int64_t inFlight;
  bool hostRunsHere;
};

} // namespace sluice::passes
