// Ways to place a model, each judged by the plan that it would be compiled to.
#pragma once

#include "passes/assign/PlacementGraph.h"
#include "passes/kernel/PreparedKernels.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/placement/Evaluation.h"
#include "tools/compiler/placement/costs/Costs.h"
#include "tools/compiler/placement/report/PlacementFile.h"
#include <functional>

namespace sluice::compiler {

/// The devices of an entry point's groups, or why there are none.
struct Assignment {
  std::vector<uint32_t> devices;
  Failure obstacle = {ExitCode::Fine, ""};
};
using Strategy = std::function<Assignment(passes::PlacementGraph &graph)>;

struct Candidate {
  std::string name;
  Failure obstacle = {ExitCode::Fine, ""};              ///< why it cannot be
  std::map<std::string, std::vector<uint32_t>> devices; ///< of each entry point's groups
  std::optional<Evaluation> evaluation;                 ///< none if it cannot be compiled
  bool isSimple = false;                                ///< everything on one device
  bool isWritten = true;                                ///< else the model is compiled as it is

  bool isPossible() const { return obstacle.code == ExitCode::Fine; }
};

/// What all candidates share.
struct PlacementSetting {
  mlir::ModuleOp module; ///< in phase `train`
  passes::PipelineOptions pipeline;
  TargetCosts costs;
  std::unique_ptr<passes::DeviceBackends> backends;
  std::string entry;
  PlacementFile written; ///< decisions to keep, about the entry point that counts
  passes::PreparedKernels prepared;
  /// Of each entry point of the module, by name; what is written is pinned.
  std::map<std::string, passes::PlacementGraph> graphs;

  const ir::Target &target() const { return backends->target(); }
  /// The graph of the entry point that counts.
  const passes::PlacementGraph &graph() const { return graphs.at(entry); }
  /// The entry points, the one that counts first: it decides where states live.
  std::vector<std::string> entries() const;
};

/// Everything on one device but states that the user has put elsewhere; work that the user has put elsewhere is an
/// obstacle.
Assignment everythingOn(const passes::PlacementGraph &graph, uint32_t device, const ir::Target &target);
/// All work on one device that it can run and that the user has not put elsewhere; the rest on the host, and the states
/// too unless the device runs everything.
Assignment preferring(const passes::PlacementGraph &graph, uint32_t device);
/// What the user has said, and the rest on the target's first device.
Assignment asPinned(const passes::PlacementGraph &graph, const ir::Target &target);

/// A strategy for the entry point that counts alone; what the others do that it does not goes where it can.
Strategy forEntryThatCounts(const PlacementSetting &setting, Strategy strategy);

/// Follows a strategy, first for the entry point that counts. Others have the states where it has them, and the same
/// ops too, as those of the forward pass. What is placed as one of `known` is not compiled again.
Candidate tryStrategy(PlacementSetting &setting, const std::string &name, const Strategy &strategy,
                      llvm::ArrayRef<Candidate> known = {});

/// The user's own placement, which is compiled as if nobody chose, unless a file has decisions to keep.
Candidate tryPinned(PlacementSetting &setting, llvm::ArrayRef<Candidate> known);

/// The candidate's devices for the module that was asked about, as `passes::applyPlacement` notes them.
passes::ChosenDevices applyCandidate(const PlacementSetting &setting, const Candidate &candidate);

} // namespace sluice::compiler
