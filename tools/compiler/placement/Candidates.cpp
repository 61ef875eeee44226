#include "tools/compiler/placement/Candidates.h"

#include <fmt/format.h>

using namespace mlir;
using sluice::passes::PlacedGroup;
using sluice::passes::PlacementGraph;
using sluice::passes::PlacementProblem;

namespace sluice::compiler {

PlacementGraph PlacementSetting::graphOf(ModuleOp of, llvm::StringRef name) const {
  PlacementGraph graph =
      passes::buildPlacementGraph(of.lookupSymbol<ir::EntryOp>(name), *backends, costs.model, options);
  if (name == entry)
    written.fix(graph);
  return graph;
}

std::vector<std::string> PlacementSetting::entries() const {
  std::vector<std::string> names{entry};
  for (auto other : ModuleOp(module).getOps<ir::EntryOp>())
    if (other.getSymName() != entry)
      names.push_back(other.getSymName().str());
  return names;
}

static Assignment cannotBe(std::string why) { return {{}, {ExitCode::Unsupported, std::move(why)}}; }

Assignment everythingOn(const PlacementGraph &graph, uint32_t device, const ir::Target &target) {
  Assignment result;
  for (auto [group, problem] : llvm::zip_equal(graph.groups, graph.problem.groups)) {
    uint32_t wanted = problem.pinned.value_or(device);
    bool works = group.kind == PlacedGroup::Launch;
    if (works && wanted != device)
      return cannotBe(fmt::format("{} is to run on {}", group.name, target.devices()[wanted].name));
    if (works && problem.times[device] == PlacementProblem::kImpossible)
      return cannotBe(fmt::format("{} cannot run there ({})", group.name, group.unsupported));
    result.devices.push_back(wanted);
  }
  return result;
}

Assignment preferring(const PlacementGraph &graph, uint32_t device) {
  auto canRun = [&](const PlacementProblem::Group &group) {
    return group.times[device] != PlacementProblem::kImpossible;
  };
  bool runsAll = llvm::all_of(graph.problem.groups, canRun), runsAny = false;
  Assignment result;
  for (auto [group, problem] : llvm::zip_equal(graph.groups, graph.problem.groups)) {
    bool works = group.kind == PlacedGroup::Launch;
    runsAny |= works && canRun(problem);
    bool goes = works ? canRun(problem) : runsAll;
    result.devices.push_back(problem.pinned.value_or(goes ? device : 0));
  }
  if (!runsAny)
    result.obstacle = {ExitCode::Unsupported, "it runs nothing of this model"};
  return result;
}

Assignment asPinned(const PlacementGraph &graph, const ir::Target &target) {
  auto first = uint32_t(&target.first() - target.devices().data());
  Assignment result;
  for (auto [group, problem] : llvm::zip_equal(graph.groups, graph.problem.groups)) {
    result.devices.push_back(problem.pinned.value_or(first));
    if (problem.times[result.devices.back()] == PlacementProblem::kImpossible)
      return cannotBe(fmt::format("{} cannot run there ({})", group.name, group.unsupported));
  }
  return result;
}

namespace {

/// Where ops of the entry point that counts went, so that the same ops of others go there too: those of one line.
class Places {
public:
  void note(const PlacementGraph &graph, llvm::ArrayRef<uint32_t> devices) {
    for (auto [group, device] : llvm::zip_equal(graph.groups, devices))
      for (Operation *op : group.fusion.ops)
        places.try_emplace({op->getLoc().getAsOpaquePointer(), op->getName().getAsOpaquePointer()}, device);
  }

  /// Pins what has a place.
  void follow(PlacementGraph &graph) const {
    for (auto [group, problem] : llvm::zip_equal(graph.groups, graph.problem.groups))
      for (Operation *op : group.fusion.ops)
        if (auto known = places.find({op->getLoc().getAsOpaquePointer(), op->getName().getAsOpaquePointer()});
            known != places.end() && !problem.pinned && problem.times[known->second] != PlacementProblem::kImpossible)
          problem.pinned = known->second;
  }

private:
  llvm::DenseMap<std::pair<const void *, const void *>, uint32_t> places;
};

} // namespace

/// What no strategy places, such as the random numbers of a device that has none, goes where it can.
static Assignment whereItCan(PlacementGraph &graph) {
  constexpr std::chrono::duration<double> kSearch(0.2);
  std::optional<passes::Placement> placement = passes::placeGroups(graph.problem, kSearch);
  if (!placement)
    return cannotBe(fmt::format("no device can run all of {}", graph.entry.getSymName().str()));
  return {placement->devices};
}

/// Compiles the module, which is used up, to its plan.
static void judge(const PlacementSetting &setting, ModuleOp module, Candidate &candidate) {
  auto evaluation = evaluate(module, setting.pipeline, setting.entry, setting.costs.hostRunsHere);
  if (!evaluation) {
    candidate.obstacle = takeFailure(evaluation.takeError());
    return;
  }
  candidate.evaluation = std::move(*evaluation);
  for (size_t device = 0; device < setting.costs.memoryCaps.size(); ++device) {
    std::optional<int64_t> cap = setting.costs.memoryCaps[device];
    int64_t peak = candidate.evaluation->peakBytes[device];
    if (cap && peak > *cap)
      candidate.obstacle = {ExitCode::Exhausted, fmt::format("{} would need {} bytes and may have {}",
                                                             setting.target().devices()[device].name, peak, *cap)};
  }
}

Candidate tryStrategy(const PlacementSetting &setting, const std::string &name, const Strategy &strategy) {
  Candidate candidate;
  candidate.name = name;
  OwningOpRef<ModuleOp> copy(cast<ModuleOp>(ModuleOp(setting.module)->clone()));
  Places places;
  for (const std::string &entry : setting.entries()) {
    bool counts = entry == setting.entry;
    PlacementGraph graph = setting.graphOf(*copy, entry);
    places.follow(graph);
    Assignment assignment = strategy(graph);
    if (!counts && assignment.obstacle.code != ExitCode::Fine) {
      graph = setting.graphOf(*copy, entry); // without what the strategy asked of it
      places.follow(graph);
      assignment = whereItCan(graph);
    }
    candidate.obstacle = assignment.obstacle;
    if (!candidate.isPossible())
      return candidate;
    if (counts)
      places.note(graph, assignment.devices);
    passes::applyPlacement(graph, assignment.devices, setting.target());
    candidate.devices[entry] = std::move(assignment.devices);
  }
  judge(setting, *copy, candidate);
  return candidate;
}

Candidate tryPinned(const PlacementSetting &setting) {
  const char *name = "as pinned";
  if (!setting.written.empty())
    return tryStrategy(setting, name, [&](PlacementGraph &graph) { return asPinned(graph, setting.target()); });
  Candidate candidate;
  candidate.name = name;
  candidate.isWritten = false;
  OwningOpRef<ModuleOp> copy(cast<ModuleOp>(ModuleOp(setting.module)->clone()));
  for (const std::string &entry : setting.entries()) {
    Assignment assignment = asPinned(setting.graphOf(*copy, entry), setting.target());
    candidate.obstacle = assignment.obstacle;
    if (!candidate.isPossible())
      return candidate;
    candidate.devices[entry] = std::move(assignment.devices);
  }
  judge(setting, *copy, candidate);
  return candidate;
}

void applyCandidate(const PlacementSetting &setting, const Candidate &candidate, ModuleOp module) {
  if (!candidate.isWritten)
    return;
  for (const std::string &entry : setting.entries())
    passes::applyPlacement(setting.graphOf(module, entry), candidate.devices.at(entry), setting.target());
}

} // namespace sluice::compiler
