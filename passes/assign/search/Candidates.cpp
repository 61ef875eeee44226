#include "passes/assign/search/Candidates.h"

#include "runtime/plan/DeviceName.h"

using namespace mlir;

namespace sluice::passes {

std::vector<std::string> PlacementSetting::entries() const {
  std::vector<std::string> names{entry};
  for (auto other : ModuleOp(module).getOps<ir::EntryOp>())
    if (other.getSymName() != entry)
      names.push_back(other.getSymName().str());
  return names;
}

static Assignment cannotBe(std::string why) { return {{}, {Obstacle::Unsupported, std::move(why)}}; }

static Assignment cannotRun(const PlacedGroup &group) {
  return cannotBe(group.name + " cannot run there (" + group.unsupported + ")");
}

Assignment everythingOn(const PlacementGraph &graph, uint32_t device, const ir::Target &target) {
  Assignment result;
  for (auto [group, problem] : llvm::zip_equal(graph.groups, graph.problem.groups)) {
    uint32_t wanted = problem.pinned.value_or(device);
    bool works = group.kind == PlacedGroup::Launch;
    if (works && wanted != device)
      return cannotBe(group.name + " is to run on " + runtime::shownDevice(target.devices()[wanted].name));
    if (works && problem.times[device] == PlacementProblem::kImpossible)
      return cannotRun(group);
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
    result.obstacle = {Obstacle::Unsupported, "it runs nothing of this model"};
  return result;
}

Assignment asPinned(const PlacementGraph &graph, const ir::Target &target) {
  auto first = uint32_t(&target.first() - target.devices().data());
  Assignment result;
  for (auto [group, problem] : llvm::zip_equal(graph.groups, graph.problem.groups)) {
    result.devices.push_back(problem.pinned.value_or(first));
    if (problem.times[result.devices.back()] == PlacementProblem::kImpossible)
      return cannotRun(group);
  }
  return result;
}

namespace {

/// The devices of states and ops of the entry point that counts, to place those of other entry points alike: states by
/// name, ops by line.
class KnownDevices {
public:
  void note(const PlacementGraph &graph, llvm::ArrayRef<uint32_t> devices) {
    for (auto [group, device] : llvm::zip_equal(graph.groups, devices)) {
      if (group.kind == PlacedGroup::State)
        known.try_emplace(keyOf(group.state), device);
      for (Operation *op : group.fusion.ops)
        known.try_emplace(keyOf(op), device);
    }
  }

  /// Pins groups with a known device.
  void follow(PlacementGraph &graph) const {
    for (auto [group, problem] : llvm::zip_equal(graph.groups, graph.problem.groups)) {
      if (group.kind == PlacedGroup::State)
        pin(problem, group.state);
      for (Operation *op : group.fusion.ops)
        pin(problem, op);
    }
  }

private:
  using Key = std::pair<const void *, const void *>;
  static Key keyOf(Operation *op) {
    if (auto state = dyn_cast<ir::StateOp>(op))
      return {state.getAsOpaquePointer(), nullptr};
    return {op->getLoc().getAsOpaquePointer(), op->getName().getAsOpaquePointer()};
  }

  void pin(PlacementProblem::Group &problem, Operation *op) const {
    auto found = known.find(keyOf(op));
    if (found != known.end() && !problem.pinned && problem.times[found->second] != PlacementProblem::kImpossible)
      problem.pinned = found->second;
  }

  llvm::DenseMap<Key, uint32_t> known;
};

} // namespace

/// Groups that no strategy places, such as random numbers of a device without support, go to a device that can run
/// them, within the caps if possible.
static Assignment whereItCan(PlacementGraph &graph, const std::vector<std::optional<int64_t>> &caps) {
  constexpr int64_t kEffort = 100'000;
  graph.problem.memoryCaps = caps;
  std::optional<Placement> placement = placeGroups(graph.problem, kEffort);
  if (!placement) {
    graph.problem.memoryCaps.assign(caps.size(), std::nullopt);
    placement = placeGroups(graph.problem, kEffort);
  }
  if (!placement)
    return cannotBe("no device can run all of " + graph.entry.getSymName().str());
  return {placement->devices, {}};
}

/// A clone of the module, with the candidate's devices.
static OwningOpRef<ModuleOp> clonePlaced(const PlacementSetting &setting, const Candidate &candidate) {
  IRMapping clone;
  OwningOpRef<ModuleOp> copy(cast<ModuleOp>(ModuleOp(setting.module)->clone(clone)));
  for (const auto &[entry, devices] : candidate.devices)
    if (candidate.isWritten)
      applyPlacement(setting.graphs.at(entry), devices, setting.target(), clone);
  return copy;
}

/// Compiles the candidate to its plan, unless an equal placement was compiled before.
static void judge(PlacementSetting &setting, Candidate &candidate, llvm::ArrayRef<Candidate> known) {
  const Candidate *same = llvm::find_if(
      known, [&](const Candidate &other) { return other.evaluation && other.devices == candidate.devices; });
  if (same != known.end()) {
    candidate.evaluation = same->evaluation;
    candidate.obstacle = same->obstacle;
    return;
  }
  PipelineInputs inputs = setting.inputs;
  OwningOpRef<ModuleOp> copy = clonePlaced(setting, candidate);
  inputs.prepared = &setting.prepared;
  candidate.evaluation =
      evaluate(*copy, setting.options, inputs, setting.entry, setting.costs.hostRunsHere, candidate.obstacle);
  if (!candidate.evaluation)
    return;
  for (size_t device = 0; device < setting.costs.memoryCaps.size(); ++device) {
    std::optional<int64_t> cap = setting.costs.memoryCaps[device];
    int64_t peak = candidate.evaluation->peakBytes[device];
    if (cap && peak > *cap)
      candidate.obstacle = {Obstacle::Exhausted, (runtime::shownDevice(setting.target().devices()[device].name) +
                                                  llvm::Twine(" would need ") + llvm::Twine(peak) +
                                                  " bytes and may have " + llvm::Twine(*cap))
                                                     .str()};
  }
}

/// The devices of all entry points' groups; an obstacle if the strategy has one for the entry point that counts.
static Obstacle assign(const PlacementSetting &setting, const Strategy &strategy, Candidate &candidate) {
  KnownDevices devices;
  for (const std::string &entry : setting.entries()) {
    bool counts = entry == setting.entry;
    PlacementGraph graph = setting.graphs.at(entry);
    devices.follow(graph);
    PlacementGraph asked = graph; // a strategy may modify it
    Assignment assignment = strategy(asked);
    if (!counts && assignment.obstacle.kind != Obstacle::None)
      assignment = whereItCan(graph, setting.costs.memoryCaps);
    if (assignment.obstacle.kind != Obstacle::None)
      return assignment.obstacle;
    if (counts)
      devices.note(graph, assignment.devices);
    candidate.devices[entry] = std::move(assignment.devices);
  }
  return {};
}

Strategy forEntryThatCounts(const PlacementSetting &setting, Strategy strategy) {
  return [&setting, strategy = std::move(strategy)](PlacementGraph &graph) {
    return graph.entry.getSymName() == setting.entry ? strategy(graph) : cannotBe("the rest goes where it can");
  };
}

Candidate tryStrategy(PlacementSetting &setting, const std::string &name, const Strategy &strategy,
                      llvm::ArrayRef<Candidate> known) {
  Candidate candidate;
  candidate.name = name;
  candidate.obstacle = assign(setting, strategy, candidate);
  if (candidate.isPossible())
    judge(setting, candidate, known);
  return candidate;
}

Candidate tryPinned(PlacementSetting &setting, llvm::ArrayRef<Candidate> known) {
  const char *name = "as pinned";
  auto pinned = [&](PlacementGraph &graph) { return asPinned(graph, setting.target()); };
  if (llvm::any_of(setting.graph().groups, [](const PlacedGroup &group) { return group.isKept; }))
    return tryStrategy(setting, name, forEntryThatCounts(setting, pinned), known);
  Candidate candidate;
  candidate.name = name;
  candidate.isWritten = false;
  for (const std::string &entry : setting.entries()) {
    PlacementGraph graph = setting.graphs.at(entry);
    Assignment assignment = pinned(graph);
    candidate.obstacle = assignment.obstacle;
    if (!candidate.isPossible())
      return candidate;
    candidate.devices[entry] = std::move(assignment.devices);
  }
  judge(setting, candidate, known);
  return candidate;
}

void applyCandidate(const PlacementSetting &setting, const Candidate &candidate) {
  for (const std::string &entry : setting.entries())
    if (candidate.isWritten)
      applyPlacement(setting.graphs.at(entry), candidate.devices.at(entry), setting.target());
}

} // namespace sluice::passes
