// An entry point as a placement problem: what will be fused is placed together.
#pragma once

#include "passes/analysis/CostModel.h"
#include "passes/analysis/FusionGroups.h"
#include "passes/analysis/GroupPlacement.h"
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
  std::string name;        ///< unique in the entry point: "conv2d_relu", "conv2d_relu_1"; a state's name
  FusionGroup fusion;      ///< of a launch or copy
  ir::StateOp state;       ///< of a state
  LaunchCost cost;         ///< of a launch
  std::string unsupported; ///< why a device cannot run it: "acc0: ..."
  bool isFixed = false;    ///< by a pin or by the model
};

/// Groups and problem in the same order. States that are written in the entry point cost a copy in each call where they
/// are read elsewhere; others cost memory alone, as their copies are made once.
struct PlacementGraph {
  ir::EntryOp entry;
  std::vector<PlacedGroup> groups;
  PlacementProblem problem; ///< without caps

  uint32_t deviceCount() const { return problem.deviceCount(); }
};

struct PlacementOptions {
  bool fuse = true;
  /// What transient memory is taken to be, as a share of the bytes of all values: buffers are used again.
  std::vector<double> transientShare; ///< per device; empty: 1
};

/// The problem of an entry point of a module in phase `train`; states that have `sluice.placement` stay there.
PlacementGraph buildPlacementGraph(ir::EntryOp entry, const DeviceBackends &backends, const CostModel &costs,
                                   const PlacementOptions &options);

/// Writes an assignment as `sluice.placement` on every op and state that nobody has fixed. An op that several launches
/// on different devices find again is cloned, so that each finds it where it works.
void applyPlacement(const PlacementGraph &graph, const std::vector<uint32_t> &devices, const ir::Target &target);

} // namespace sluice::passes
