// Candidate placements of a model, each judged by its compiled plan.
#pragma once

#include "passes/assign/PlacementGraph.h"
#include "passes/assign/search/Evaluation.h"
#include "passes/assign/search/TargetCosts.h"
#include "passes/kernel/PreparedKernels.h"
#include <functional>

namespace sluice::passes {

/// The devices of an entry point's groups, or the reason why there are none.
struct Assignment {
  std::vector<uint32_t> devices;
  Obstacle obstacle;
};
using Strategy = std::function<Assignment(PlacementGraph &graph)>;

struct Candidate {
  std::string name;
  Obstacle obstacle;                                    ///< reason why it is impossible
  std::map<std::string, std::vector<uint32_t>> devices; ///< of the groups, by entry point
  std::optional<Evaluation> evaluation;                 ///< none if it cannot be compiled
  bool isSimple = false;                                ///< everything on one device
  bool isWritten = true;                                ///< else the model is compiled without a choice

  bool isPossible() const { return obstacle.kind == Obstacle::None; }
};

/// State shared by all candidates.
struct PlacementSetting {
  mlir::ModuleOp module; ///< in phase `train`
  CompileOptions options;
  PipelineInputs inputs;
  TargetCosts costs;
  std::unique_ptr<DeviceBackends> backends;
  std::string entry;
  PreparedKernels prepared;
  /// For each entry point of the module, by name.
  std::map<std::string, PlacementGraph> graphs;

  const ir::Target &target() const { return backends->target(); }
  /// The graph of the entry point that counts.
  const PlacementGraph &graph() const { return graphs.at(entry); }
  /// The entry points, the one that counts first: it decides the devices of states.
  std::vector<std::string> entries() const;
};

/// Everything on one device, except states that the user placed elsewhere; work that the user placed elsewhere is an
/// obstacle.
Assignment everythingOn(const PlacementGraph &graph, uint32_t device, const ir::Target &target);
/// All work on one device that it supports and that the user has not placed elsewhere. The rest is on the host,
/// including the states unless the device runs everything.
Assignment preferring(const PlacementGraph &graph, uint32_t device);
/// The user's placement, and the rest on the target's first device.
Assignment asPinned(const PlacementGraph &graph, const ir::Target &target);

/// A strategy for the entry point that counts alone; additional work of the others goes to any device that can run it.
Strategy forEntryThatCounts(const PlacementSetting &setting, Strategy strategy);

/// Applies a strategy, first to the entry point that counts. In others, states and ops in common with it, such as those
/// of the forward pass, have the same devices. A placement equal to one of `known` is not compiled again.
Candidate tryStrategy(PlacementSetting &setting, const std::string &name, const Strategy &strategy,
                      llvm::ArrayRef<Candidate> known = {});

/// The user's own placement, compiled as without a choice, unless decisions are kept.
Candidate tryPinned(PlacementSetting &setting, llvm::ArrayRef<Candidate> known);

/// Records the candidate's devices in the original module, with `applyPlacement`.
void applyCandidate(const PlacementSetting &setting, const Candidate &candidate);

} // namespace sluice::passes
