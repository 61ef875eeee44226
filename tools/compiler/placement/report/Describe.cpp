#include "tools/compiler/placement/report/Describe.h"

#include "ir/text/DiagnosticText.h"
#include "passes/assign/GroupValues.h"
#include "passes/assign/search/GroupLaunches.h"
#include "runtime/plan/DeviceName.h"
#include <fmt/format.h>

using namespace mlir;
using sluice::passes::PlacedGroup;
using sluice::passes::PlacementGraph;
using sluice::passes::PlacementProblem;

namespace sluice::compiler {

static constexpr double kSecondsPerPicosecond = 1e-12;

static std::string timeText(double seconds) {
  double size = std::abs(seconds);
  if (size >= 1e-3)
    return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

namespace {

/// The change of the objective when single groups move.
class Marginals {
public:
  Marginals(const PlacementProblem &problem, std::vector<uint32_t> devices)
      : problem(problem), devices(std::move(devices)), values(problem) {}

  /// The additional seconds of work and copies with this group on `device`.
  double added(uint32_t group, uint32_t device) {
    int64_t before = costAround(group);
    uint32_t home = std::exchange(devices[group], device);
    int64_t after = costAround(group);
    devices[group] = home;
    return double(after - before) * kSecondsPerPicosecond;
  }

private:
  int64_t costAround(uint32_t group) const {
    int64_t cost = problem.groups[group].times[devices[group]];
    for (const std::vector<uint32_t> *touching : {&values.made(group), &values.read(group)})
      for (uint32_t number : *touching) {
        const PlacementProblem::Value &value = problem.values[number];
        for (uint32_t to : passes::destinations(value, devices))
          cost += problem.copyTime(value, devices[value.producer], to);
      }
    return cost;
  }

  const PlacementProblem &problem;
  std::vector<uint32_t> devices;
  passes::GroupValues values;
};

class Description {
public:
  Description(const passes::PlacementSetting &setting, const passes::Candidate &chosen,
              llvm::ArrayRef<passes::Candidate> candidates)
      : setting(setting), evaluation(*chosen.evaluation), graph(setting.graph()),
        devices(chosen.devices.at(setting.entry)), marginals(graph.problem, devices),
        unhindered(fastestWithoutCaps(chosen, candidates)) {}

  void fill(PlacementReport &report) {
    report.model = evaluation.plan.model;
    report.entry = setting.entry;
    report.rows = evaluation.plan.capacity;
    report.predictedSeconds = evaluation.seconds;
    addGroups(report);
    addDevices(report);
    addCopies(report);
  }

private:
  /// The choice without memory caps.
  static const passes::Candidate &fastestWithoutCaps(const passes::Candidate &chosen,
                                                     llvm::ArrayRef<passes::Candidate> candidates) {
    const passes::Candidate *best = &chosen;
    for (const passes::Candidate &candidate : candidates)
      if (candidate.evaluation && candidate.evaluation->seconds < best->evaluation->seconds)
        best = &candidate;
    return *best;
  }

  const std::string &nameOf(uint32_t device) const { return setting.target().devices()[device].name; }

  void addDevices(PlacementReport &report) const {
    llvm::ArrayRef<ir::TargetDevice> list = setting.target().devices();
    for (auto [i, device] : llvm::enumerate(list)) {
      PlacementReport::Device &item = report.devices.emplace_back();
      item.name = device.name;
      item.spelling = device.spelling();
      const passes::DeviceCosts &costs = setting.costs.model.device(device.name);
      item.costs = costs.source;
      item.architecture = costs.architecture;
      for (const PlacementReport::Group &group : report.groups)
        if (auto kind = costs.estimated.find(group.kind); kind != costs.estimated.end() && group.device == device.name)
          item.estimated.insert(*kind);
      item.capBytes = setting.costs.memoryCaps[i];
      item.peakBytes = evaluation.peakBytes[i];
      for (const runtime::State &state : evaluation.plan.states)
        if (evaluation.plan.deviceOf(state.slot) == i)
          item.stateBytes += state.bytes;
      item.memory = memoryOver(i);
      for (const ir::TargetDevice &other : list)
        if (other.name != device.name)
          report.links.push_back({device.name, other.name, setting.costs.model.link(device.name, other.name)});
    }
  }

  /// The live bytes, without the states, at each change.
  std::vector<std::pair<double, int64_t>> memoryOver(size_t device) const {
    const runtime::Plan &plan = evaluation.plan;
    std::map<double, int64_t> changes;
    std::map<std::pair<size_t, int64_t>, int64_t> alive; // offset to bytes
    for (auto [listed, interval] : llvm::zip_equal(evaluation.actions(), evaluation.timeline)) {
      auto note = [&](const runtime::Slot &slot, int64_t size) {
        bool isTransient = plan.deviceOf(slot) == device && plan.arenas[slot.arena].name == "transient";
        if (isTransient && alive.try_emplace({slot.arena, slot.offset}, size).second)
          changes[interval.start] += size;
      };
      for (const runtime::Buffer &buffer : listed.action->buffers())
        if (buffer.isWritten())
          note(buffer.slot, buffer.bytes);
      for (const runtime::Buffer &end : listed.action->lastUses)
        if (auto known = alive.find({end.slot.arena, end.slot.offset}); known != alive.end()) {
          changes[interval.end] -= known->second;
          alive.erase(known);
        }
    }
    int64_t bytes = 0;
    std::vector<std::pair<double, int64_t>> steps{{0, 0}};
    for (auto [time, change] : changes)
      steps.emplace_back(time, bytes += change);
    return steps;
  }

  void addGroups(PlacementReport &report) {
    std::vector<std::optional<size_t>> numbers(graph.groups.size());
    for (PlacedGroup::Kind kind : {PlacedGroup::Launch, PlacedGroup::State})
      for (uint32_t i = 0; i < graph.groups.size(); ++i)
        if (graph.groups[i].kind == kind) {
          numbers[i] = report.groups.size();
          report.groups.push_back(describe(i));
        }
    for (const PlacementProblem::Value &value : graph.problem.values)
      for (uint32_t consumer : value.consumers)
        if (numbers[consumer] && numbers[value.producer])
          report.groups[*numbers[consumer]].reads.push_back(*numbers[value.producer]);
    schedule(report, numbers);
  }

  PlacementReport::Group describe(uint32_t i) {
    const PlacedGroup &group = graph.groups[i];
    const PlacementProblem::Group &problem = graph.problem.groups[i];
    PlacementReport::Group item;
    item.name = group.name;
    item.kind = group.cost.kind;
    item.device = nameOf(devices[i]);
    item.isState = group.kind == PlacedGroup::State;
    if (item.isState) {
      ir::StateOp state = group.state;
      item.kind = ir::stringifyStateKind(state.getKind()).str();
      item.stateBytes = problem.memory[devices[i]];
      item.source = ir::printLocation(state.getLoc());
    } else {
      item.source = ir::printLocation(group.fusion.ops.back()->getLoc());
      for (Operation *op : group.fusion.ops)
        item.ops.push_back(op->getName().getStringRef().str());
    }
    for (uint32_t device = 0; device < problem.times.size(); ++device) {
      PlacementReport::Elsewhere elsewhere{nameOf(device), std::nullopt, 0};
      if (problem.times[device] != PlacementProblem::kImpossible) {
        elsewhere.workSeconds = double(problem.times[device]) * kSecondsPerPicosecond;
        elsewhere.addedSeconds = device == devices[i] ? 0 : marginals.added(i, device);
      }
      item.devices.push_back(elsewhere);
    }
    item.reason = reasonFor(group, problem, item);
    if (!group.isFixed && !group.isKept)
      item.reason += capAgainst(i);
    return item;
  }

  std::string reasonFor(const PlacedGroup &group, const PlacementProblem::Group &problem,
                        const PlacementReport::Group &item) const {
    if (group.isKept)
      return "set by the placement file";
    if (group.isFixed)
      return item.isState && item.kind == "hyperparameter" ? "the host sets it" : "fixed by the model";
    std::string reason;
    for (auto [elsewhere, time] : llvm::zip_equal(item.devices, problem.times)) {
      if (elsewhere.device == item.device)
        continue;
      reason += reason.empty() ? "" : "; ";
      std::string name = runtime::shownDevice(elsewhere.device);
      if (time == PlacementProblem::kImpossible)
        reason += fmt::format("{} cannot run it ({})", name, group.unsupported);
      else if (elsewhere.addedSeconds > 0)
        reason += fmt::format("on {} work and copies would take {} more", name, timeText(elsewhere.addedSeconds));
      else if (elsewhere.addedSeconds < 0)
        reason += fmt::format("on {} work and copies would take {} less by themselves, but the groups around it or the "
                              "schedule's overlap decide",
                              name, timeText(-elsewhere.addedSeconds));
      else
        reason += fmt::format("on {} it would take the same", name);
    }
    return reason.empty() ? "there is no other device" : reason;
  }

  /// Names the cap without which the group would be on another device, if there is one.
  std::string capAgainst(uint32_t i) const {
    uint32_t wanted = unhindered.devices.at(setting.entry)[i];
    std::string text;
    for (size_t device = 0; device < setting.costs.memoryCaps.size() && wanted != devices[i]; ++device)
      if (std::optional<int64_t> cap = setting.costs.memoryCaps[device];
          cap && unhindered.evaluation->peakBytes[device] > *cap)
        text += fmt::format("; {} may have {} bytes, and '{}', which has it on {}, needs {}",
                            runtime::shownDevice(nameOf(uint32_t(device))), *cap, shownAlternative(unhindered.name),
                            runtime::shownDevice(nameOf(wanted)), unhindered.evaluation->peakBytes[device]);
    return text;
  }

  /// Sets the times at which the plan's kernels run.
  void schedule(PlacementReport &report, llvm::ArrayRef<std::optional<size_t>> numbers) const {
    for (auto [number, launch] : llvm::zip_equal(numbers, passes::findGroupLaunches(graph, devices, evaluation))) {
      if (!launch)
        continue;
      PlacementReport::Group &group = report.groups[*number];
      group.kernel = launch->launch->name;
      group.start = evaluation.timeline[launch->action].start;
      group.end = evaluation.timeline[launch->action].end;
    }
  }

  void addCopies(PlacementReport &report) const {
    static constexpr const char *kWhen[] = {"step", "stale", "asked"};
    const runtime::Plan &plan = evaluation.plan;
    std::vector<runtime::ListedAction> actions = evaluation.actions();
    std::map<std::string, size_t> groups; // by their kernels
    for (auto [i, group] : llvm::enumerate(report.groups))
      if (!group.kernel.empty())
        groups[group.kernel] = i;
    for (auto [i, listed] : llvm::enumerate(actions)) {
      const runtime::Copy *copy = listed.action->copy(); // no other action moves values before phase `fused`
      if (!copy)
        continue;
      PlacementReport::Copy &item = report.copies.emplace_back();
      item.value = copy->value;
      item.from = plan.devices[plan.deviceOf(copy->from)].name;
      item.to = plan.devices[plan.deviceOf(copy->to)].name;
      item.reason = copy->reason;
      item.queue = plan.queues[listed.action->queues.front()].name;
      if (auto producer = groups.find(copy->value); producer != groups.end())
        item.producer = producer->second;
      for (const runtime::ListedAction &other : actions)
        if (const runtime::Launch *launch = other.action->launch())
          if (auto reader = groups.find(launch->name); reader != groups.end() && reads(*launch, copy->to))
            item.consumers.push_back(reader->second);
      item.when = kWhen[size_t(copy->when)];
      item.source = copy->source;
      item.bytes = copy->bytesFor(plan.capacity);
      item.seconds = setting.costs.model.copySeconds(item.from, item.to, double(item.bytes));
      item.start = evaluation.workSeconds[i] > 0 ? evaluation.timeline[i].start : -1;
      item.end = evaluation.workSeconds[i] > 0 ? evaluation.timeline[i].end : -1;
      item.isHidden = item.end >= 0 && overlapsWork(i);
    }
  }

  static bool reads(const runtime::Launch &launch, const runtime::Slot &slot) {
    return llvm::any_of(launch.buffers,
                        [&](const runtime::Buffer &buffer) { return !buffer.isWritten() && buffer.slot == slot; });
  }

  /// Whether devices compute during nearly the whole copy. Times of devices that compute at once add up.
  bool overlapsWork(size_t copy) const {
    const auto &moved = evaluation.timeline[copy];
    double covered = 0;
    for (auto [listed, interval] : llvm::zip_equal(evaluation.actions(), evaluation.timeline))
      if (listed.action->launch())
        covered += std::max(0.0, std::min(moved.end, interval.end) - std::max(moved.start, interval.start));
    constexpr double kNearlyAll = 0.95;
    return covered >= kNearlyAll * (moved.end - moved.start);
  }

  const passes::PlacementSetting &setting;
  const passes::Evaluation &evaluation;
  const PlacementGraph &graph;
  std::vector<uint32_t> devices;
  Marginals marginals;
  const passes::Candidate &unhindered;
};

} // namespace

PlacementReport describePlacement(const passes::PlacementSetting &setting, const passes::Candidate &chosen,
                                  llvm::ArrayRef<passes::Candidate> candidates, const passes::SearchSummary &search) {
  PlacementReport report;
  Description(setting, chosen, candidates).fill(report);
  report.chosen = chosen.name;
  report.uncertainty = setting.costs.uncertainty;
  for (const passes::Candidate &candidate : candidates)
    report.alternatives.push_back(
        {candidate.name, candidate.isPossible() ? std::optional<double>(candidate.evaluation->seconds) : std::nullopt,
         candidate.obstacle.text});
  report.costSeconds = chosen.evaluation->serialSeconds;
  report.boundSeconds = std::min(report.costSeconds, double(search.leastSum) * kSecondsPerPicosecond);
  report.assignments = search.assignments;
  report.judged = search.judged;
  return report;
}

} // namespace sluice::compiler
