#include "tools/compiler/placement/Placement.h"

#include "passes/Passes.h"
#include "passes/assign/AssignmentSearch.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Phases.h"
#include "tools/compiler/placement/Candidates.h"
#include "tools/compiler/placement/Describe.h"
#include "tools/compiler/placement/GroupLaunches.h"
#include "tools/compiler/placement/MemorySearch.h"
#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>

using namespace mlir;
using sluice::passes::AssignmentSearch;
using sluice::passes::FoundAssignment;
using sluice::passes::PlacedGroup;
using sluice::passes::PlacementGraph;
using sluice::passes::PlacementProblem;

namespace sluice::compiler {

static constexpr const char *kFound = "best found";
static constexpr int64_t kCutEffort = 100'000; // nodes of graphs that are cut

namespace {

class Decision {
public:
  Decision(PlacementSetting &setting, const PlacementRequest &request)
      : setting(setting), request(request), memory(setting.costs.memoryCaps),
        model(setting.graph(), setting.target(), setting.costs.model, setting.costs.hostRunsHere),
        memoryFactors(setting.target().devices().size(), 1) {}

  llvm::Expected<PlacementDecision> run() {
    if (!request.prefer.empty())
      return prefer();
    tryKnown();
    Failure obstacle = whyNowhere(setting.graph());
    if (obstacle.code == ExitCode::Fine)
      search();
    const Candidate *best = choose();
    if (!best)
      return whyNone(obstacle);
    PlacementReport report = describePlacement(setting, *best, candidates, summary);
    report.remark = remarkOn(*best);
    return decided(*best, std::move(report));
  }

private:
  PlacementDecision decided(const Candidate &chosen, PlacementReport report) const {
    return {std::move(report), setting.costs.model, applyCandidate(setting, chosen)};
  }

  llvm::Expected<PlacementDecision> prefer() {
    const ir::TargetDevice *device = setting.target().find(request.prefer);
    Candidate preferred = tryStrategy(setting, "all it can", [&](PlacementGraph &graph) {
      return preferring(graph, uint32_t(device - setting.target().devices().data()));
    });
    if (!preferred.isPossible())
      return makeError(preferred.obstacle.code, preferred.obstacle.text);
    return decided(preferred, describePlacement(setting, preferred, preferred, {}));
  }

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

  //===- what plans tell ------------------------------------------------------------------------------------------===//

  /// From a plan with everything on one device: what its kernels take there, and how much more memory it needs than
  /// the model of assignments knows.
  void learn(uint32_t device, const Candidate &all) {
    const Evaluation &plan = *all.evaluation;
    const std::vector<uint32_t> &devices = all.devices.at(setting.entry);
    std::vector<std::optional<size_t>> launches = findGroupLaunches(setting.graph(), devices, plan);
    for (uint32_t group = 0; group < launches.size(); ++group)
      if (launches[group] && devices[group] == device)
        model.setKernel(group, device, plan.workSeconds[*launches[group]],
                        workspaceOf(setting.graph(), group, plan, *launches[group]));
    noteMemory(model.judge(devices).memory, plan.peakBytes);
  }

  void noteMemory(const std::vector<int64_t> &modelled, const std::vector<int64_t> &planned) {
    for (size_t device = 0; device < deviceCount(); ++device)
      if (modelled[device] > 0)
        memoryFactors[device] = std::max(memoryFactors[device], double(planned[device]) / double(modelled[device]));
  }

  /// Whether a plan is likely to keep the caps.
  bool isLikelyToFit(const FoundAssignment &found) const {
    for (size_t device = 0; device < deviceCount(); ++device)
      if (std::optional<int64_t> cap = setting.costs.memoryCaps[device];
          cap && memoryFactors[device] * double(found.figures.memory[device]) > double(*cap))
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

  /// No assignment's sum is less, whatever the memory. Each time in it is rounded to a picosecond.
  int64_t leastSum() const {
    const PlacementProblem &problem = setting.graph().problem;
    auto terms = int64_t(problem.groups.size() + deviceCount() * problem.values.size());
    std::optional<passes::Placement> placement = passes::placeGroups(problem, /*effort=*/1);
    return placement ? std::max<int64_t>(placement->bound - terms, 0) : 0;
  }

  /// Minimum cuts with copies at full weight, and at less of it: a schedule hides some of them.
  void offerCuts(AssignmentSearch &assignments) {
    PlacementGraph graph = setting.graph();
    scaleTransients(graph, transientShares());
    for (double weight : {1.0, 0.4, 0.1}) {
      constexpr int kTries = 8;
      memory.restart();
      for (int tries = 1; tries <= kTries && (tries == 1 || memory.goesOn()); ++tries) {
        std::optional<passes::Placement> cut = cutAt(graph.problem, weight);
        if (!cut) {
          memory.noteNone();
          continue;
        }
        assignments.offer(cut->devices);
        std::vector<int64_t> peaks = model.judge(cut->devices).memory;
        for (size_t device = 0; device < deviceCount(); ++device)
          peaks[device] = int64_t(memoryFactors[device] * double(peaks[device]));
        memory.notePlan(peaks);
      }
    }
  }

  /// How much less transient memory a device needs than its values have bytes.
  std::vector<double> transientShares() const {
    std::vector<double> shares(deviceCount(), 1);
    const PlacementGraph &graph = setting.graph();
    for (uint32_t device = 0; device < deviceCount(); ++device) {
      const Candidate &all = candidates[device];
      int64_t transient = 0, states = 0;
      for (auto [group, problem] : llvm::zip_equal(graph.groups, graph.problem.groups))
        (group.kind == PlacedGroup::State ? states : transient) += problem.memory[device];
      if (transient > 0 && all.evaluation)
        shares[device] = std::clamp(double(all.evaluation->peakBytes[device] - states) / double(transient), 0.01, 1.0);
    }
    return shares;
  }

  std::optional<passes::Placement> cutAt(const PlacementProblem &problem, double weight) const {
    PlacementProblem weighted = problem;
    weighted.memoryCaps = memory.given();
    for (auto &row : weighted.links)
      for (PlacementProblem::Link &link : row) {
        link.latency = int64_t(double(link.latency) * weight);
        link.picosecondsPerByte *= weight;
      }
    return passes::placeGroups(weighted, kCutEffort);
  }

  /// Compiles the fastest that were found, until none that is left can be faster. The model leaves relayouts out, and
  /// takes kernels for those of other plans, whose layouts may differ: what it finds nearly as fast may be faster.
  void tryFound(const AssignmentSearch &assignments) {
    std::vector<const FoundAssignment *> found; // what is likely to fit first
    for (bool isLikely : {true, false})
      for (const FoundAssignment &one : assignments.found())
        if (isLikelyToFit(one) == isLikely)
          found.push_back(&one);
    if (found.empty() && assignments.tightest())
      found.push_back(&*assignments.tightest());
    constexpr double kNearly = 1.03;
    constexpr size_t kMostGroupsCompiled = 800, kLeast = 3;
    size_t most = std::max(kLeast, kMostGroupsCompiled / setting.graph().groups.size()), compiled = 0;
    double least = most == kLeast ? 1 : kNearly; // of what was compiled
    std::optional<Candidate> best;
    for (const FoundAssignment *next : found) {
      const Candidate *known = fastest();
      if (best && best->isPossible() && (!known || best->evaluation->seconds < known->evaluation->seconds))
        known = &*best;
      if (known && next->figures.seconds >= least * known->evaluation->seconds)
        continue;
      if (compiled++ == most)
        break;
      Candidate candidate = tryDevices(next->devices);
      if (candidate.evaluation)
        noteMemory(next->figures.memory, candidate.evaluation->peakBytes);
      bool isFaster = candidate.isPossible() &&
                      (!best || !best->isPossible() || candidate.evaluation->seconds < best->evaluation->seconds);
      if (!best || isFaster)
        best = std::move(candidate);
    }
    if (best && (best->isPossible() || !fastest()))
      candidates.push_back(std::move(*best));
  }

  Candidate tryDevices(const std::vector<uint32_t> &devices) {
    auto strategy = [&](PlacementGraph &graph) {
      bool counts = ir::EntryOp(graph.entry).getSymName() == setting.entry;
      return counts ? Assignment{devices} : Assignment{{}, {ExitCode::Unsupported, "the rest goes where it can"}};
    };
    return tryStrategy(setting, kFound, strategy, candidates);
  }

  //===- the choice -----------------------------------------------------------------------------------------------===//

  /// The fastest candidate; of several that are as fast, the one that was thought of first.
  const Candidate *fastest(bool amongSimple = false) const {
    const Candidate *best = nullptr;
    for (const Candidate &candidate : candidates)
      if (candidate.isPossible() && (candidate.isSimple || !amongSimple) &&
          (!best || candidate.evaluation->seconds < best->evaluation->seconds))
        best = &candidate;
    return best;
  }

  /// The fastest, unless everything on one device is as fast but for what the figures are sure to.
  const Candidate *choose() const {
    const Candidate *best = fastest(), *simple = fastest(/*amongSimple=*/true);
    bool isFaster =
        !simple || best->evaluation->seconds < (1 - setting.costs.uncertainty) * simple->evaluation->seconds;
    return isFaster ? best : simple;
  }

  std::string remarkOn(const Candidate &chosen) const {
    const Candidate &best = *fastest();
    double gain = 1 - best.evaluation->seconds / chosen.evaluation->seconds;
    return gain > 0
               ? fmt::format("'{}' is predicted {:.2f} % faster than '{}', but figures are sure to {:g} % here: the "
                             "simpler is taken",
                             best.name, 100 * gain, chosen.name, 100 * setting.costs.uncertainty)
               : "";
  }

  /// A group that no device can run.
  static Failure whyNowhere(const PlacementGraph &graph) {
    for (uint32_t i = 0; i < graph.groups.size(); ++i) {
      auto canRun = [&](uint32_t device) { return graph.problem.canRun(i, device); };
      if (llvm::none_of(llvm::seq(graph.deviceCount()), canRun))
        return {ExitCode::Unsupported, fmt::format("{} has no device that can run it ({})", graph.groups[i].name,
                                                   graph.groups[i].unsupported)};
    }
    return {ExitCode::Fine, ""};
  }

  llvm::Error whyNone(const Failure &obstacle) const {
    if (obstacle.code != ExitCode::Fine)
      return makeError(obstacle.code, "no placement is possible: " + obstacle.text);
    std::string text;
    for (const Candidate &candidate : candidates)
      text += (text.empty() ? "" : "; ") + candidate.name + ": " + candidate.obstacle.text;
    return makeError(ExitCode::Exhausted, "no placement fits: " + text);
  }

  PlacementSetting &setting;
  const PlacementRequest &request;
  MemorySearch memory;
  passes::AssignmentModel model;
  std::vector<double> memoryFactors; // by device, of what plans need to what the model knows of
  std::vector<Candidate> candidates;
  SearchSummary summary;
};

} // namespace

/// Whether the target has all devices that the model names.
static llvm::Error checkDevices(ModuleOp module) {
  ir::DiagnosticText diagnostics(module.getContext());
  OwningOpRef<ModuleOp> copy(module.clone());
  if (succeeded(passes::placeValues(*copy)))
    return llvm::Error::success();
  return errorOf(diagnostics);
}

static llvm::Expected<std::string> entryToPlace(ModuleOp module, const std::string &asked) {
  std::vector<llvm::StringRef> names;
  for (auto entry : module.getOps<ir::EntryOp>())
    names.push_back(entry.getSymName());
  if (names.empty())
    return makeError(ExitCode::Invalid, "the model has no entry point to place");
  llvm::StringRef wanted = !asked.empty()                            ? llvm::StringRef(asked)
                           : llvm::is_contained(names, "train_step") ? "train_step"
                                                                     : names.front();
  if (llvm::is_contained(names, wanted))
    return wanted.str();
  return makeError(ExitCode::Usage, "there is no entry point '" + wanted + "'" + didYouMean(wanted, names) +
                                        "; there are " + llvm::join(names, ", "));
}

llvm::Expected<PlacementSetting> preparePlacement(ModuleOp module, const passes::PipelineOptions &pipeline,
                                                  const PlacementRequest &request) {
  PlacementSetting setting;
  setting.module = module;
  setting.pipeline = pipeline;
  auto entry = entryToPlace(module, request.entry);
  if (!entry)
    return entry.takeError();
  setting.entry = *entry;
  if (llvm::Error error = checkDevices(module))
    return error;
  ir::DiagnosticText diagnostics(module.getContext());
  setting.backends = passes::DeviceBackends::create(module, pipeline.backends, pipeline.cpu);
  if (!setting.backends)
    return errorOf(diagnostics);
  auto costs = costsOf(setting.target(), request);
  if (!costs)
    return costs.takeError();
  setting.costs = std::move(*costs);
  setting.pipeline.costs = setting.costs.model;
  for (auto op : module.getOps<ir::EntryOp>())
    setting.graphs.emplace(op.getSymName().str(),
                           passes::buildPlacementGraph(op, *setting.backends, setting.costs.model, pipeline.fuse));
  PlacementGraph &graph = setting.graphs.at(setting.entry);
  if (!request.file.empty()) {
    auto written = PlacementFile::read(request.file, graph, setting.target());
    if (!written)
      return written.takeError();
    setting.written = std::move(*written);
    setting.written.fix(graph);
  }
  return setting;
}

llvm::Expected<PlacementDecision> choosePlacement(ModuleOp module, const passes::PipelineOptions &pipeline,
                                                  const PlacementRequest &request) {
  auto setting = preparePlacement(module, pipeline, request);
  if (!setting)
    return setting.takeError();
  return Decision(*setting, request).run();
}

} // namespace sluice::compiler
