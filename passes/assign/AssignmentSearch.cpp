#include "passes/assign/AssignmentSearch.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

namespace sluice::passes {

using Devices = std::vector<uint32_t>;

static constexpr size_t kKept = 1024;
/// Limits of all walks together: evaluated assignments, and evaluated assignments times groups.
static constexpr int64_t kMostJudged = 4096, kMostGroupsJudged = 30'000;
/// With at most this many open groups all pairs of them are moved, else only pairs that share a value.
static constexpr size_t kAllPairs = 24;

/// How many devices a group may be on.
static int64_t countChoices(const PlacementGraph &graph, uint32_t group) {
  return llvm::count_if(llvm::seq(graph.deviceCount()),
                        [&](uint32_t device) { return graph.problem.canRun(group, device); });
}

static bool isOpen(const PlacementGraph &graph, uint32_t group) {
  PlacedGroup::Kind kind = graph.groups[group].kind;
  return (kind == PlacedGroup::Launch || kind == PlacedGroup::State) && countChoices(graph, group) > 1;
}

AssignmentSearch::AssignmentSearch(const PlacementGraph &graph, const AssignmentModel &model,
                                   std::vector<std::optional<int64_t>> caps)
    : graph(graph), model(model), caps(std::move(caps)) {
  constexpr int64_t kCountable = int64_t(1) << 40;
  for (uint32_t group = 0; group < graph.groups.size(); ++group) {
    if (!isOpen(graph, group))
      continue;
    open.push_back(group);
    count = count && *count < kCountable ? std::optional(*count * countChoices(graph, group)) : std::nullopt;
  }
}

double AssignmentSearch::excessOf(const AssignmentFigures &figures) const {
  double excess = 0;
  for (size_t device = 0; device < caps.size(); ++device)
    if (caps[device] && figures.memory[device] > *caps[device])
      excess += double(figures.memory[device]) / std::max(1.0, double(*caps[device])) - 1;
  return excess;
}

void AssignmentSearch::keep(const Devices &devices, const AssignmentFigures &figures) {
  double excess = excessOf(figures);
  if (excess > 0) {
    if (!nearest || excess < leastExcess)
      nearest = {devices, figures}, leastExcess = excess;
    return;
  }
  auto isFaster = [](const AssignmentFigures &a, const FoundAssignment &b) { return a.seconds < b.figures.seconds; };
  best.insert(std::upper_bound(best.begin(), best.end(), figures, isFaster), {devices, figures});
  if (best.size() > kKept)
    best.pop_back();
}

AssignmentSearch::Score AssignmentSearch::judge(const Devices &devices) {
  auto [score, isNew] = known.try_emplace(devices);
  if (!isNew)
    return score->second;
  ++judgements;
  AssignmentFigures figures = model.judge(devices);
  keep(devices, figures);
  return score->second = {excessOf(figures), figures.seconds};
}

void AssignmentSearch::run() {
  if (isExhaustive())
    return judgeAll();
  std::vector<Devices> starts;
  for (const FoundAssignment &found : best)
    starts.push_back(found.devices);
  if (starts.empty() && nearest)
    starts.push_back(nearest->devices);
  pairs = findPairs();
  for (Devices &start : starts)
    walkFrom(std::move(start));
}

/// Whether the work of one device alone takes longer than the slowest assignment kept.
bool AssignmentSearch::isTooSlow(const Devices &devices) const {
  if (best.size() < kKept)
    return false;
  std::vector<double> busy(graph.deviceCount());
  for (uint32_t group : open)
    if (graph.groups[group].kind == PlacedGroup::Launch)
      busy[devices[group]] += model.kernelSeconds(group, devices[group]);
  constexpr double kRounding = 1e-9;
  return *llvm::max_element(busy) > (1 + kRounding) * best.back().figures.seconds;
}

void AssignmentSearch::judgeAll() {
  Devices devices;
  auto first = [&](uint32_t group, uint32_t from) {
    while (from < graph.deviceCount() && !graph.problem.canRun(group, from))
      ++from;
    return from;
  };
  for (uint32_t group = 0; group < graph.groups.size(); ++group)
    devices.push_back(first(group, 0));
  for (bool goesOn = true; goesOn;) {
    if (!known.contains(devices) && isTooSlow(devices))
      ++judgements; // by its work alone
    else
      judge(devices);
    goesOn = llvm::any_of(open, [&](uint32_t group) {
      devices[group] = first(group, devices[group] + 1);
      bool carries = devices[group] == graph.deviceCount();
      if (carries)
        devices[group] = first(group, 0);
      return !carries;
    });
  }
}

bool AssignmentSearch::isSpent() const {
  return judgements >= kMostJudged || judgements * int64_t(graph.groups.size()) >= kMostGroupsJudged;
}

void AssignmentSearch::walkFrom(Devices devices) {
  Score score = judge(devices);
  while (improve(devices, score)) {
  }
}

/// Pairs of open groups that are moved together.
std::vector<std::pair<uint32_t, uint32_t>> AssignmentSearch::findPairs() const {
  std::set<std::pair<uint32_t, uint32_t>> result;
  if (open.size() <= kAllPairs) {
    for (size_t i = 0; i < open.size(); ++i)
      for (size_t j = i + 1; j < open.size(); ++j)
        result.insert({open[i], open[j]});
    return {result.begin(), result.end()};
  }
  llvm::BitVector isOpen(graph.groups.size());
  for (uint32_t group : open)
    isOpen.set(group);
  for (const PlacementProblem::Value &value : graph.problem.values)
    for (uint32_t consumer : value.consumers)
      if (consumer != value.producer && isOpen.test(consumer) && isOpen.test(value.producer))
        result.insert(std::minmax(consumer, value.producer));
  return {result.begin(), result.end()};
}

/// Takes the first improving move of each group and pair. Returns whether any improved.
bool AssignmentSearch::improve(Devices &devices, Score &score) {
  bool moved = false;
  for (uint32_t group : open)
    for (uint32_t to = 0; to < graph.deviceCount() && !isSpent(); ++to)
      moved |= tryMove(devices, score, {group}, to);
  if (moved)
    return true;
  for (auto [a, b] : pairs)
    for (uint32_t to = 0; to < graph.deviceCount() && !isSpent(); ++to) {
      moved |= tryMove(devices, score, {a, b}, to);
      if (devices[a] != devices[b]) { // swap the two
        Devices swapped = devices;
        std::swap(swapped[a], swapped[b]);
        bool can = graph.problem.canRun(a, swapped[a]) && graph.problem.canRun(b, swapped[b]);
        if (Score after = can ? judge(swapped) : score; after < score)
          devices = std::move(swapped), score = after, moved = true;
      }
    }
  return moved;
}

bool AssignmentSearch::tryMove(Devices &devices, Score &score, llvm::ArrayRef<uint32_t> groups, uint32_t to) {
  Devices moved = devices;
  for (uint32_t group : groups)
    if (graph.problem.canRun(group, to))
      moved[group] = to;
  if (moved == devices)
    return false;
  Score after = judge(moved);
  if (after >= score)
    return false;
  devices = std::move(moved);
  score = after;
  return true;
}

} // namespace sluice::passes
