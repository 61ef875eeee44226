#include "passes/assign/search/PlacementSearch.h"

#include "passes/assign/AssignmentSearch.h"
#include "passes/assign/MemorySearch.h"
#include "passes/assign/PlannedMemory.h"
#include "passes/assign/search/GroupLaunches.h"
#include <set>

using namespace mlir;

namespace sluice::passes {

static constexpr const char *kFound = "best found";
static constexpr int64_t kCutEffort = 100'000; // nodes of graphs that are cut

namespace {

class Decision {
public:
  explicit Decision(PlacementSetting &setting)
      : setting(setting), model(setting.graph(), setting.target(), setting.costs.model, setting.costs.hostRunsHere) {}

  SearchResult run() {
    tryKnown();
    Obstacle obstacle = whyNowhere(setting.graph());
    if (obstacle.kind == Obstacle::None)
      search();
    auto numberOf = [&](const Candidate *one) {
      return one ? std::optional<size_t>(one - candidates.data()) : std::nullopt;
    };
    std::optional<size_t> best = numberOf(fastest()), chosen = numberOf(choose());
    return {std::move(candidates), best, chosen, summary, std::move(obstacle)};
  }

private:
  size_t deviceCount() const { return setting.target().devices().size(); }

  void tryKnown() {
    for (uint32_t device = 0; device < deviceCount(); ++device) {
      Candidate all = tryStrategy(
          setting, "all " + setting.target().devices()[device].name,
          [&](PlacementGraph &graph) { return everythingOn(graph, device, setting.target()); }, candidates);
      all.isSimple = true;
      if (all.evaluation)
        learn(device, all);
      candidates.push_back(std::move(all));
    }
    candidates.push_back(tryPinned(setting, candidates));
  }

  //===- figures of plans -----------------------------------------------------------------------------------------===//

  /// Takes from a plan with everything on one device the times of its kernels there, and its memory beyond the model of
  /// assignments.
  void learn(uint32_t device, const Candidate &all) {
    const Evaluation &plan = *all.evaluation;
    const std::vector<uint32_t> &devices = all.devices.at(setting.entry);
    std::vector<std::optional<GroupLaunch>> launches = findGroupLaunches(setting.graph(), devices, plan);
    for (uint32_t group = 0; group < launches.size(); ++group)
      if (launches[group] && devices[group] == device)
        model.setKernel(group, device, plan.workSeconds[launches[group]->action],
                        workspaceOf(setting.graph(), group, *launches[group]->launch));
    memory.note(devices, model.judge(devices).memory, plan.peakBytes);
  }

  bool isLikelyToFit(const FoundAssignment &found) const {
    std::vector<int64_t> bytes = memory.likely(found.devices, found.figures.memory);
    for (size_t device = 0; device < deviceCount(); ++device)
      if (std::optional<int64_t> cap = setting.costs.memoryCaps[device]; cap && bytes[device] > *cap)
        return false;
    return true;
  }

  //===- the search -----------------------------------------------------------------------------------------------===//

  void search() {
    AssignmentSearch assignments(setting.graph(), model, setting.costs.memoryCaps);
    summary.leastSum = leastSum();
    for (const Candidate &candidate : candidates)
      if (auto devices = candidate.devices.find(setting.entry); devices != candidate.devices.end())
        assignments.offer(devices->second);
    if (!assignments.isExhaustive())
      offerCuts(assignments);
    assignments.run();
    summary.assignments = assignments.assignments();
    summary.judged = assignments.judged();
    tryFound(assignments);
  }

  /// A lower bound of all assignments' sums, regardless of memory. Each of its times is rounded to a picosecond.
  int64_t leastSum() const {
    const PlacementProblem &problem = setting.graph().problem;
    auto terms = int64_t(problem.groups.size() + deviceCount() * problem.values.size());
    std::optional<Placement> placement = placeGroups(problem, /*effort=*/1);
    return placement ? std::max<int64_t>(placement->bound - terms, 0) : 0;
  }

  /// Minimum cuts under the caps: with the memory of all values, scaled to the sharing in plans, and with that of the
  /// values live at the peak.
  void offerCuts(AssignmentSearch &assignments) {
    PlacementGraph shared = setting.graph();
    scaleTransients(shared, transientShares(shared));
    offerCuts(assignments, shared.problem);
    if (llvm::any_of(setting.costs.memoryCaps, [](const auto &cap) { return cap.has_value(); })) {
      PlacementGraph atPeak = setting.graph();
      countAtPeak(atPeak);
      scaleTransients(atPeak, transientShares(atPeak));
      offerCuts(assignments, atPeak.problem);
    }
    offerSmallerCuts(assignments, shared.problem);
  }

  /// With copies at full weight and at lower weights, because a schedule hides some of them.
  void offerCuts(AssignmentSearch &assignments, const PlacementProblem &problem) {
    MemorySearch caps(setting.costs.memoryCaps);
    for (double weight : {1.0, 0.4, 0.1}) {
      constexpr int kTries = 8;
      caps.restart();
      for (int tries = 1; tries <= kTries && (tries == 1 || caps.goesOn()); ++tries) {
        std::optional<Placement> cut = cutAt(problem, weight, caps.given());
        if (!cut) {
          caps.noteNone();
          continue;
        }
        assignments.offer(cut->devices);
        caps.notePlan(memory.likely(cut->devices, model.judge(cut->devices).memory));
      }
    }
  }

  /// Choices that would be made with less memory, so that more memory never gives a slower placement.
  void offerSmallerCuts(AssignmentSearch &assignments, const PlacementProblem &problem) {
    for (double share : {0.7, 0.5, 0.35, 0.25}) {
      std::vector<std::optional<int64_t>> caps = setting.costs.memoryCaps;
      for (uint32_t device = kHostNumber + 1; device < deviceCount(); ++device) {
        const Candidate &all = candidates[device];
        if (!caps[device] && all.evaluation)
          caps[device] = all.evaluation->peakBytes[device];
        if (caps[device])
          caps[device] = int64_t(share * double(*caps[device]));
      }
      if (std::optional<Placement> cut = cutAt(problem, /*weight=*/1, caps))
        assignments.offer(cut->devices);
    }
  }

  /// By device: the share of the graph's transient memory that a plan with everything there needs.
  std::vector<double> transientShares(const PlacementGraph &graph) const {
    std::vector<double> shares(deviceCount(), 1);
    for (uint32_t device = 0; device < deviceCount(); ++device) {
      const Candidate &all = candidates[device];
      int64_t transient = 0, states = 0;
      for (auto [group, problem] : llvm::zip_equal(graph.groups, graph.problem.groups))
        (group.kind == PlacedGroup::State ? states : transient) += problem.memory[device];
      if (transient > 0 && all.evaluation)
        shares[device] = std::max(double(all.evaluation->peakBytes[device] - states) / double(transient), 0.01);
    }
    return shares;
  }

  static std::optional<Placement> cutAt(const PlacementProblem &problem, double weight,
                                        const std::vector<std::optional<int64_t>> &caps) {
    PlacementProblem weighted = problem;
    weighted.memoryCaps = caps;
    for (auto &row : weighted.links)
      for (PlacementProblem::Link &link : row) {
        link.latency = int64_t(double(link.latency) * weight);
        link.picosecondsPerByte *= weight;
      }
    return placeGroups(weighted, kCutEffort);
  }

  /// Compiles the fastest assignments until no remaining one can be faster. Their number has a limit, which is twice as
  /// large until one fits. The model omits relayouts, and takes kernel times from other plans, whose layouts may
  /// differ. So an assignment that it predicts as nearly as fast may be faster.
  void tryFound(const AssignmentSearch &assignments) {
    std::vector<const FoundAssignment *> left; // the fastest first
    for (const FoundAssignment &one : assignments.found())
      left.push_back(&one);
    if (left.empty() && assignments.tightest())
      left.push_back(&*assignments.tightest());
    constexpr double kNearly = 1.03;
    constexpr size_t kMostGroupsCompiled = 800, kLeast = 3;
    size_t most = std::max(kLeast, kMostGroupsCompiled / setting.graph().groups.size());
    double least = most == kLeast ? 1 : kNearly; // of compiled assignments
    for (size_t plans = 0; plans < (hasFound() ? most : 2 * most); ++plans) {
      if (const Candidate *best = fastest())
        llvm::erase_if(left, [&](const FoundAssignment *one) {
          return one->figures.seconds >= least * best->evaluation->seconds;
        });
      if (left.empty())
        break;
      tryPlan(*takeNext(left));
    }
    if (assignments.isExhaustive())
      improvePlan(assignments.choices());
    if (candidates.back().name == kFound && !hasFound() && fastest())
      candidates.pop_back();
  }

  /// Whether a compiled assignment fits.
  bool hasFound() const { return candidates.back().name == kFound && candidates.back().isPossible(); }

  /// The fastest assignment that probably fits, judging by plans so far; else the fastest of all.
  const FoundAssignment *takeNext(std::vector<const FoundAssignment *> &left) const {
    auto next = llvm::find_if(left, [&](const FoundAssignment *one) { return isLikelyToFit(*one); });
    const FoundAssignment *taken = next != left.end() ? *next : left.front();
    llvm::erase(left, taken);
    return taken;
  }

  /// Moves one group or two in the fastest plan as long as plans confirm an improvement.
  void improvePlan(llvm::ArrayRef<uint32_t> groups) {
    for (bool improves = fastest() && fastest()->devices.contains(setting.entry); improves;) {
      improves = false;
      for (uint32_t one : groups)
        for (uint32_t other : groups)
          if (other <= one)
            improves |= tryMoves(one, other);
    }
  }

  bool tryMoves(uint32_t one, uint32_t other) {
    constexpr double kMaySay = 1.25; // largest predicted slowdown of the true optimum
    const PlacementProblem &problem = setting.graph().problem;
    bool improves = false;
    for (uint32_t to = 0; to < deviceCount(); ++to)
      for (uint32_t otherTo = 0; otherTo < deviceCount(); ++otherTo) {
        FoundAssignment moved{fastest()->devices.at(setting.entry), {}};
        moved.devices[one] = to;
        moved.devices[other] = otherTo;
        if (!problem.canRun(one, to) || !problem.canRun(other, otherTo) || compiled.contains(moved.devices))
          continue;
        moved.figures = model.judge(moved.devices);
        if (isLikelyToFit(moved) && moved.figures.seconds < kMaySay * fastest()->evaluation->seconds)
          improves |= tryPlan(moved);
      }
    return improves;
  }

  /// Whether the plan of an assignment is the fastest feasible one so far.
  bool tryPlan(const FoundAssignment &assignment) {
    compiled.insert(assignment.devices);
    auto asAssigned = forEntryThatCounts(setting, [&](PlacementGraph &) { return Assignment{assignment.devices, {}}; });
    Candidate candidate = tryStrategy(setting, kFound, asAssigned, candidates);
    if (candidate.evaluation)
      memory.note(assignment.devices, assignment.figures.memory, candidate.evaluation->peakBytes);
    bool isFastest = candidate.isPossible() && isFaster(candidate, fastest());
    Candidate *found = candidates.back().name == kFound ? &candidates.back() : nullptr;
    if (!found)
      candidates.push_back(std::move(candidate));
    else if (candidate.isPossible() && (!found->isPossible() || isFaster(candidate, found)))
      *found = std::move(candidate);
    return isFastest;
  }

  //===- the choice -----------------------------------------------------------------------------------------------===//

  /// The fastest candidate; of equal ones, the first.
  const Candidate *fastest(bool amongSimple = false) const {
    const Candidate *best = nullptr;
    for (const Candidate &candidate : candidates)
      if (candidate.isPossible() && (candidate.isSimple || !amongSimple) && isFaster(candidate, best))
        best = &candidate;
    return best;
  }

  static bool isFaster(const Candidate &candidate, const Candidate *than) {
    return !than || candidate.evaluation->seconds < than->evaluation->seconds;
  }

  /// The fastest candidate, unless everything on one device is as fast within the uncertainty of the figures.
  const Candidate *choose() const {
    const Candidate *best = fastest(), *simple = fastest(/*amongSimple=*/true);
    bool isFaster =
        !simple || best->evaluation->seconds < (1 - setting.costs.uncertainty) * simple->evaluation->seconds;
    return isFaster ? best : simple;
  }

  /// The obstacle of a group that no device can run.
  static Obstacle whyNowhere(const PlacementGraph &graph) {
    for (uint32_t i = 0; i < graph.groups.size(); ++i) {
      auto canRun = [&](uint32_t device) { return graph.problem.canRun(i, device); };
      if (llvm::none_of(llvm::seq(graph.deviceCount()), canRun))
        return {Obstacle::Unsupported,
                graph.groups[i].name + " has no device that can run it (" + graph.groups[i].unsupported + ")"};
    }
    return {};
  }

  PlacementSetting &setting;
  AssignmentModel model;
  PlannedMemory memory;
  std::vector<Candidate> candidates;
  std::set<std::vector<uint32_t>> compiled; // found assignments
  SearchSummary summary;
};

} // namespace

SearchResult searchPlacement(PlacementSetting &setting) { return Decision(setting).run(); }

} // namespace sluice::passes
