// Candidate placements of a model, each judged by its compiled plan.
#pragma once

#include "passes/assign/PlacementGraph.h"
#include "passes/kernel/PreparedKernels.h"
#include "tools/compiler/placement/Evaluation.h"
#include "tools/compiler/placement/TargetCosts.h"
#include <functional>

namespace sluice::compiler {

/// The devices of an entry point's groups, or the reason why there are none.
struct Assignment {
  std::vector<uint32_t> devices;
  passes::Obstacle obstacle;
};
using Strategy = std::function<Assignment(passes::PlacementGraph &graph)>;

struct Candidate {
  std::string name;
  passes::Obstacle obstacle;                            ///< reason why it is impossible
  std::map<std::string, std::vector<uint32_t>> devices; ///< of the groups, by entry point
  std::optional<Evaluation> evaluation;                 ///< none if it cannot be compiled
  bool isSimple = false;                                ///< everything on one device
  bool isWritten = true;                                ///< else the model is compiled without a choice

  bool isPossible() const { return obstacle.kind == passes::Obstacle::None; }
};

/// State shared by all candidates.
struct PlacementSetting {
  mlir::ModuleOp module; ///< in phase `train`
  passes::PipelineOptions pipeline;
  TargetCosts costs;
  std::unique_ptr<passes::DeviceBackends> backends;
  std::string entry;
  passes::PreparedKernels prepared;
  /// For each entry point of the module, by name.
  std::map<std::string, passes::PlacementGraph> graphs;

  const ir::Target &target() const { return backends->target(); }
  /// The graph of the entry point that counts.
  const passes::PlacementGraph &graph() const { return graphs.at(entry); }
  /// The entry points, the one that counts first: it decides the devices of states.
  std::vector<std::string> entries() const;
};

/// Everything on one device, except states that the user placed elsewhere; work that the user placed elsewhere is an
/// obstacle.
Assignment everythingOn(const passes::PlacementGraph &graph, uint32_t device, const ir::Target &target);
/// All work on one device that it supports and that the user has not placed elsewhere. The rest is on the host,
/// including the states unless the device runs everything.
Assignment preferring(const passes::PlacementGraph &graph, uint32_t device);
/// The user's placement, and the rest on the target's first device.
Assignment asPinned(const passes::PlacementGraph &graph, const ir::Target &target);

/// A strategy for the entry point that counts alone; additional work of the others goes to any device that can run it.
Strategy forEntryThatCounts(const PlacementSetting &setting, Strategy strategy);

/// Applies a strategy, first to the entry point that counts. In others, states and ops in common with it, such as those
/// of the forward pass, have the same devices. A placement equal to one of `known` is not compiled again.
Candidate tryStrategy(PlacementSetting &setting, const std::string &name, const Strategy &strategy,
                      llvm::ArrayRef<Candidate> known = {});

/// The user's own placement, compiled as without a choice, unless decisions are kept.
Candidate tryPinned(PlacementSetting &setting, llvm::ArrayRef<Candidate> known);

/// The candidate's devices for the original module, as recorded by `passes::applyPlacement`.
passes::ChosenDevices applyCandidate(const PlacementSetting &setting, const Candidate &candidate);

} // namespace sluice::compiler
