#include "tools/compiler/placement/Placement.h"

#include "passes/Passes.h"
#include "passes/schedule/Actions.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Phases.h"
#include "tools/compiler/placement/Candidates.h"
#include "tools/compiler/placement/Describe.h"
#include "tools/compiler/placement/MemorySearch.h"
#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>

using namespace mlir;
using sluice::passes::PlacedGroup;
using sluice::passes::PlacementGraph;
using sluice::passes::PlacementProblem;

namespace sluice::compiler {

static constexpr const char *kMinimumCut = "minimum cut";

namespace {

class Decision {
public:
  Decision(PlacementSetting &setting, const PlacementRequest &request)
      : setting(setting), request(request), memory(setting.costs.memoryCaps) {}

  llvm::Expected<PlacementReport> run() {
    if (!request.prefer.empty())
      return prefer();
    tryKnown();
    tryCuts();
    const Candidate *best = choose();
    if (!best)
      return whyNone();
    PlacementReport report = describePlacement(setting, *best, candidates, boundOf(*best));
    report.remark = remarkOn(*best);
    applyCandidate(setting, *best, setting.module);
    return report;
  }

private:
  llvm::Expected<PlacementReport> prefer() {
    const ir::TargetDevice *device = setting.target().find(request.prefer);
    Candidate preferred = tryStrategy(setting, "all it can", [&](PlacementGraph &graph) {
      return preferring(graph, uint32_t(device - setting.target().devices().data()));
    });
    if (!preferred.isPossible())
      return makeError(preferred.obstacle.code, preferred.obstacle.text);
    applyCandidate(setting, preferred, setting.module);
    return describePlacement(setting, preferred, preferred, {0, 0});
  }

  size_t deviceCount() const { return setting.target().devices().size(); }

  void tryKnown() {
    for (uint32_t device = 0; device < deviceCount(); ++device) {
      Candidate &all = candidates.emplace_back(
          tryStrategy(setting, "all " + setting.target().devices()[device].name,
                      [&](PlacementGraph &graph) { return everythingOn(graph, device, setting.target()); }));
      all.isSimple = true;
      if (all.evaluation)
        learnMemory(device, *all.evaluation);
    }
    candidates.push_back(tryPinned(setting));
  }

  /// How much less transient memory a device needs than its values have bytes, from a plan with everything there.
  void learnMemory(uint32_t device, const Evaluation &evaluation) {
    PlacementGraph graph = setting.graphOf(setting.module, setting.entry);
    int64_t transient = 0, states = 0;
    for (auto [group, problem] : llvm::zip_equal(graph.groups, graph.problem.groups))
      (group.kind == PlacedGroup::State ? states : transient) += problem.memory[device];
    shares.resize(deviceCount(), 1);
    if (transient > 0)
      shares[device] = std::clamp(double(evaluation.peakBytes[device] - states) / double(transient), 0.01, 1.0);
  }

  /// Minimum cuts with copies at full weight, and at less of it: a schedule hides some of them.
  void tryCuts() {
    shares.resize(deviceCount(), 1);
    setting.options.transientShare = shares;
    for (double weight : {1.0, 0.4, 0.1}) {
      Candidate cut = tryCut(weight);
      bool isNew = cut.evaluation &&
                   llvm::none_of(candidates, [&](const Candidate &known) { return known.devices == cut.devices; });
      if (isNew || weight == 1)
        candidates.push_back(std::move(cut));
    }
  }

  /// The fastest of a few cuts, with more and less memory for the problem.
  Candidate tryCut(double weight) {
    constexpr int kTries = 8;
    std::string name = weight == 1 ? kMinimumCut : fmt::format("{}, copies at {}", kMinimumCut, weight);
    std::optional<Candidate> best;
    memory.restart();
    for (int tries = 1; tries <= kTries && (tries == 1 || memory.goesOn()); ++tries) {
      Candidate cut = tryStrategy(setting, name, [&](PlacementGraph &graph) {
        return cutAt(graph, weight, request.searchSeconds / (tries == 1 ? 1 : kTries));
      });
      if (cut.evaluation)
        memory.notePlan(cut.evaluation->peakBytes);
      else if (cut.obstacle.code == ExitCode::Exhausted)
        memory.noteNone();
      else
        return cut;
      bool isBetter =
          best && cut.isPossible() && (!best->isPossible() || cut.evaluation->seconds < best->evaluation->seconds);
      if (!best || isBetter)
        best = std::move(cut);
    }
    return std::move(*best);
  }

  Assignment cutAt(PlacementGraph &graph, double weight, double seconds) {
    graph.problem.memoryCaps = memory.given();
    forbidTooLarge(graph);
    PlacementProblem weighted = graph.problem;
    for (auto &row : weighted.links)
      for (PlacementProblem::Link &link : row) {
        link.latency = int64_t(double(link.latency) * weight);
        link.picosecondsPerByte *= weight;
      }
    std::optional<passes::Placement> placement = passes::placeGroups(weighted, std::chrono::duration<double>(seconds));
    if (!placement)
      return {{}, whyNoCut(graph)};
    if (weight == 1 && ir::EntryOp(graph.entry).getSymName() == setting.entry)
      bound = std::min(bound.value_or(placement->bound), placement->bound); // of the problem that allows most
    return {placement->devices};
  }

  /// A group that no device can run, or memory.
  static Failure whyNoCut(const PlacementGraph &graph) {
    for (auto [group, problem] : llvm::zip_equal(graph.groups, graph.problem.groups)) {
      auto isImpossible = [](int64_t time) { return time == PlacementProblem::kImpossible; };
      if (!llvm::all_of(problem.times, isImpossible) &&
          !(problem.pinned && isImpossible(problem.times[*problem.pinned])))
        continue;
      if (group.unsupported.empty())
        return {ExitCode::Exhausted, fmt::format("what {} reads and makes is larger than the memory that {} may have",
                                                 group.name, problem.pinned ? "its device" : "any device")};
      return {ExitCode::Unsupported,
              fmt::format("{} has no device that can run it ({})", group.name, group.unsupported)};
    }
    return {ExitCode::Exhausted, "the devices' memory does not hold what must be on them"};
  }

  /// What a launch reads and leaves is on its device all at once, however well buffers are used again.
  void forbidTooLarge(PlacementGraph &graph) const {
    int64_t rows = ir::getCapacity(setting.module);
    for (auto [group, problem] : llvm::zip_equal(graph.groups, graph.problem.groups))
      for (size_t device = 0; device < deviceCount(); ++device)
        if (std::optional<int64_t> cap = setting.costs.memoryCaps[device];
            cap && group.cost.work.bytes + group.cost.work.bytesPerRow * rows > *cap)
          problem.times[device] = PlacementProblem::kImpossible;
  }

  /// The fastest candidate; of several that are as fast, the one that was thought of first.
  const Candidate *fastest(bool amongSimple) const {
    const Candidate *best = nullptr;
    for (const Candidate &candidate : candidates)
      if (candidate.isPossible() && (candidate.isSimple || !amongSimple) &&
          (!best || candidate.evaluation->seconds < best->evaluation->seconds))
        best = &candidate;
    return best;
  }

  /// The fastest, unless everything on one device is as fast as far as predictions can tell.
  const Candidate *choose() const {
    const Candidate *best = fastest(/*amongSimple=*/false), *simple = fastest(/*amongSimple=*/true);
    bool isSure = !simple || best->evaluation->seconds < (1 - kPlacementUncertainty) * simple->evaluation->seconds;
    return isSure ? best : simple;
  }

  std::string remarkOn(const Candidate &chosen) const {
    const Candidate &best = *fastest(/*amongSimple=*/false);
    double gain = 1 - best.evaluation->seconds / chosen.evaluation->seconds;
    return gain > 0
               ? fmt::format("'{}' is predicted {:.2f} % faster than '{}', which is less than predictions are sure "
                             "to ({:.0f} %): the simpler is taken",
                             best.name, 100 * gain, chosen.name, 100 * kPlacementUncertainty)
               : "";
  }

  /// A cut may place everything anywhere: what keeps it from that keeps all. Where that is memory, each candidate tells
  /// of its own.
  llvm::Error whyNone() const {
    const Candidate &cut =
        *llvm::find_if(candidates, [](const Candidate &candidate) { return candidate.name == kMinimumCut; });
    if (cut.obstacle.code != ExitCode::Exhausted)
      return makeError(cut.obstacle.code, "no placement is possible: " + cut.obstacle.text);
    std::string text;
    for (const Candidate &candidate : candidates)
      text += (text.empty() ? "" : "; ") + candidate.name + ": " + candidate.obstacle.text;
    return makeError(ExitCode::Exhausted, "no placement fits: " + text);
  }

  /// The objective of a candidate and the least that any can have.
  std::pair<int64_t, int64_t> boundOf(const Candidate &candidate) const {
    PlacementGraph graph = setting.graphOf(setting.module, setting.entry);
    int64_t cost = passes::costOf(graph.problem, candidate.devices.at(setting.entry));
    return {cost, std::min(cost, bound.value_or(0))};
  }

  PlacementSetting &setting;
  const PlacementRequest &request;
  MemorySearch memory;
  std::vector<Candidate> candidates;
  std::vector<double> shares;   // of transient memory, per device
  std::optional<int64_t> bound; // of the cut that allows most: copies at full weight, the caps as they are
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

llvm::Expected<PlacementDecision> choosePlacement(ModuleOp module, const passes::PipelineOptions &pipeline,
                                                  const PlacementRequest &request) {
  PlacementSetting setting;
  setting.module = module;
  setting.pipeline = pipeline;
  setting.options.fuse = pipeline.fuse;
  auto entry = entryToPlace(module, request.entry);
  if (!entry)
    return entry.takeError();
  setting.entry = *entry;
  if (llvm::Error error = checkDevices(module))
    return std::move(error);
  ir::DiagnosticText diagnostics(module.getContext());
  setting.backends = passes::DeviceBackends::create(module, pipeline.backends, pipeline.cpu);
  if (!setting.backends)
    return errorOf(diagnostics);
  auto costs = costsOf(setting.target(), request);
  if (!costs)
    return costs.takeError();
  setting.costs = std::move(*costs);
  setting.pipeline.costs = setting.costs.model;
  if (!request.file.empty()) {
    auto written = PlacementFile::read(request.file, setting.graphOf(module, setting.entry), setting.target());
    if (!written)
      return written.takeError();
    setting.written = std::move(*written);
  }
  auto report = Decision(setting, request).run();
  if (!report)
    return report.takeError();
  return PlacementDecision{std::move(*report), setting.costs.model};
}

} // namespace sluice::compiler
