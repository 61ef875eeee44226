// An entry point as a placement problem: ops of one fusion group are placed together.
#pragma once

#include "mlir/IR/IRMapping.h"
#include "passes/analysis/CostModel.h"
#include "passes/analysis/FusionGroups.h"
#include "passes/assign/GroupPlacement.h"
#include "passes/assign/PlacementFlow.h"
#include "passes/backend/DeviceBackends.h"

namespace sluice::passes {

/// A group of the problem and its source.
struct PlacedGroup {
  enum Kind {
    Inputs, ///< of the entry point: on the host, without work
    State,  ///< a state and its slots: memory without work
    Copy,   ///< written by the user
    Launch, ///< ops that share a kernel
  } kind;
  std::string name;   ///< unique in the entry point: "conv2d_relu", "conv2d_relu_1"; a state's name
  FusionGroup fusion; ///< of a launch or copy
  ir::StateOp state;  ///< of a state
  LaunchCost cost;    ///< of a launch
  /// Of a launch on each device; none if it cannot run there.
  std::vector<std::optional<double>> seconds;
  std::string unsupported; ///< why a device cannot run it: "gpu(0): ..."
  bool isFixed = false;    ///< by a pin or by the model
  bool isKept = false;     ///< by a decision of an earlier search
};

/// Groups and problem in the same order. A state that the entry point updates costs a copy per call on each other
/// device that reads it. Other states cost only memory, because they are copied once.
struct PlacementGraph {
  ir::EntryOp entry;
  std::vector<PlacedGroup> groups;
  PlacementProblem problem; ///< without caps
  PlacementFlow flow;

  uint32_t deviceCount() const { return problem.deviceCount(); }
};

/// The problem of an entry point of a module in phase `train`.
PlacementGraph buildPlacementGraph(ir::EntryOp entry, const DeviceBackends &backends, const CostModel &costs,
                                   bool fuse);

/// Counts transient memory at one moment: the peak of live values when all groups run in program order. Values that are
/// dead then, or computed later, count nothing.
void countAtPeak(PlacementGraph &graph);
/// Scales transient memory by a share of the bytes of all values, per device, since buffers are reused.
void scaleTransients(PlacementGraph &graph, const std::vector<double> &shares);

/// Records an assignment's device (ChosenDevices.h) for every op and state that the user has not placed. An op that
/// launches on several devices rematerialize is cloned for each device.
void applyPlacement(const PlacementGraph &graph, const std::vector<uint32_t> &devices, const ir::Target &target);
/// The same in a clone of the graph's module.
void applyPlacement(const PlacementGraph &graph, const std::vector<uint32_t> &devices, const ir::Target &target,
                    const mlir::IRMapping &clone);

} // namespace sluice::passes
