// The predicted performance of an assignment of a placement graph's groups to devices, without compiling it: the time
// from one call to the next, and the memory of each device.
//
// The assignment is converted to the launches and copies that the compiler would create. Their order, offsets and waits
// come from the code of the phases `scheduled` and `planned`, and the schedule model of plans predicts their times. The
// figures therefore match the plan if its kernels are the graph's groups. Not included, because decided later:
// relayouts, the padding of layouts, the expansion of ops, and workspaces of kernels unknown to `setKernel`. Also not
// included: constants that must be copied, the memory of other entry points, of states unused here, and of logs.
#pragma once

#include "passes/assign/AssignedCall.h"

namespace sluice::passes {

struct AssignmentFigures {
  double seconds = 0;          ///< from the end of one call to the end of the next
  std::vector<int64_t> memory; ///< of each device, bytes
};

class AssignmentModel {
public:
  /// `hostRunsHere`: the issuing thread also runs the host's work. The graph must outlive the model.
  AssignmentModel(const PlacementGraph &graph, const ir::Target &target, const CostModel &model, bool hostRunsHere);

  /// The time of a group's kernel on a device without contention, and its workspace.
  void setKernel(uint32_t group, uint32_t device, double seconds, int64_t workspaceBytes);

  /// The figures of an assignment. Each group must be on a device that can run it.
  AssignmentFigures judge(const std::vector<uint32_t> &devices) const;

  double kernelSeconds(uint32_t group, uint32_t device) const { return costs.kernels[group][device].seconds; }

private:
  const PlacementGraph &graph;
  AssignmentCosts costs;
  int64_t inFlight;
  bool hostRunsHere;
};

} // namespace sluice::passes
