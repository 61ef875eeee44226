// An entry point as a placement problem: what will be fused is placed together.
#pragma once

#include "mlir/IR/IRMapping.h"
#include "passes/analysis/CostModel.h"
#include "passes/analysis/FusionGroups.h"
#include "passes/assign/ChosenDevices.h"
#include "passes/assign/GroupPlacement.h"
#include "passes/assign/PlacementFlow.h"
#include "passes/backend/DeviceBackends.h"

namespace sluice::passes {

/// A group of the problem, and what it stands for.
struct PlacedGroup {
  enum Kind {
    Inputs, ///< of the entry point: on the host, without work
    State,  ///< a state and its slots: memory without work
    Copy,   ///< a copy that the user wrote
    Launch, ///< ops that share a kernel
  } kind;
  std::string name;   ///< unique in the entry point: "conv2d_relu", "conv2d_relu_1"; a state's name
  FusionGroup fusion; ///< of a launch or copy
  ir::StateOp state;  ///< of a state
  LaunchCost cost;    ///< of a launch
  /// Of a launch on each device; none where it cannot run.
  std::vector<std::optional<double>> seconds;
  std::string unsupported; ///< why a device cannot run it: "gpu(0): ..."
  bool isFixed = false;    ///< by a pin or by the model
};

/// Groups and problem in the same order. States that are written in the entry point cost a copy in each call where they
/// are read elsewhere; others cost memory alone, as their copies are made once.
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

/// Counts transient memory at one moment: when the values that are alive, if all groups ran in the program's order, have
/// the most bytes. A value whose last reader has run by then, or that is made later, has none.
void countAtPeak(PlacementGraph &graph);
/// Takes transient memory for a share, by device, of the bytes of all values, as buffers are used again.
void scaleTransients(PlacementGraph &graph, const std::vector<double> &shares);

/// Notes an assignment's device for every op and state that nobody has fixed. An op that several launches on different
/// devices find again is cloned, so that each finds it where it works.
void applyPlacement(const PlacementGraph &graph, const std::vector<uint32_t> &devices, const ir::Target &target,
                    ChosenDevices &chosen);
/// The same in a clone of the graph's module.
void applyPlacement(const PlacementGraph &graph, const std::vector<uint32_t> &devices, const ir::Target &target,
                    const mlir::IRMapping &clone, ChosenDevices &chosen);

} // namespace sluice::passes
