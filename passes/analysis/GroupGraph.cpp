#include "passes/analysis/GroupGraph.h"

#include "llvm/Support/ErrorHandling.h"
#include <climits>
#include <queue>

using namespace mlir;

namespace sluice::passes {

bool GroupGraph::dependsOn(unsigned group, unsigned other) const {
  return groups[group].dependsOn.size() > other && groups[group].dependsOn.test(other);
}

bool GroupGraph::isConvexWith(unsigned group, const llvm::SetVector<unsigned> &producers) const {
  return llvm::none_of(producers, [&](unsigned producer) { return producer != group && dependsOn(producer, group); });
}

bool GroupGraph::isMember(Operation *op, unsigned group) const {
  auto it = groupOf.find(op);
  return it != groupOf.end() && it->second == group;
}

bool GroupGraph::leadsAround(unsigned from, unsigned to, const llvm::SetVector<unsigned> &producers) const {
  if (!isDependedOn.test(from))
    return false;
  for (unsigned between = 0; between < groups.size(); ++between)
    if (between != to && dependsOn(between, from) && (producers.contains(between) || dependsOn(to, between)))
      return true;
  return false;
}

void GroupGraph::add(FusionGroup::Kind kind) {
  groups.push_back({kind, {}, {}, llvm::BitVector(), {}});
  isDependedOn.resize(unsigned(groups.size()));
}

void GroupGraph::merge(unsigned group, unsigned into) {
  FusionGroup from = std::exchange(groups[group], {FusionGroup::Launch, {}, {}, llvm::BitVector(), {}});
  for (Operation *op : from.ops)
    groupOf[op] = into;
  llvm::append_range(groups[into].ops, from.ops);
  groups[into].contents.insert(from.contents.begin(), from.contents.end());
  for (unsigned on : from.dependsOn.set_bits())
    addDependence(into, on);
  for (unsigned other = 0; isDependedOn.test(group) && other < groups.size(); ++other)
    if (dependsOn(other, group)) {
      groups[other].dependsOn.reset(group);
      addDependence(other, into);
    }
}

void GroupGraph::addDependence(unsigned group, unsigned on) {
  if (dependsOn(group, on))
    return;
  auto extend = [&](FusionGroup &dependent) {
    dependent.dependsOn.resize(std::max<unsigned>(dependent.dependsOn.size(), groups.size()));
    dependent.dependsOn |= groups[on].dependsOn;
    dependent.dependsOn.set(on);
  };
  extend(groups[group]);
  isDependedOn.set(on);
  for (unsigned other = 0; isDependedOn.test(group) && other < groups.size(); ++other)
    if (dependsOn(other, group))
      extend(groups[other]);
}

/// The last element of both sets. An intersection as a set would be a copy for every group.
static std::optional<unsigned> lastOf(const llvm::BitVector &a, const llvm::BitVector &b) {
  auto ofA = a.getData(), ofB = b.getData();
  for (size_t word = std::min(ofA.size(), ofB.size()); word-- > 0;)
    if (auto both = ofA[word] & ofB[word])
      return unsigned(word * CHAR_BIT * sizeof both + llvm::Log2_64(both));
  return std::nullopt;
}

/// Repeatedly takes the first group that is ready. A waiting group is checked again after the last group that it
/// waits for.
SmallVector<FusionGroup> GroupGraph::sorted() const {
  SmallVector<FusionGroup> result;
  llvm::BitVector waiting(groups.size());
  for (auto [i, group] : llvm::enumerate(groups))
    waiting[unsigned(i)] = !group.ops.empty();
  std::priority_queue<unsigned, std::vector<unsigned>, std::greater<>> ready;
  std::vector<SmallVector<unsigned, 2>> behind(groups.size());
  auto lookAt = [&](unsigned group) {
    if (std::optional<unsigned> last = lastOf(groups[group].dependsOn, waiting))
      behind[*last].push_back(group);
    else
      ready.push(group);
  };
  llvm::for_each(waiting.set_bits(), lookAt);
  while (!ready.empty()) {
    unsigned next = ready.top();
    ready.pop();
    result.push_back(groups[next]);
    waiting.reset(next);
    llvm::for_each(behind[next], lookAt);
  }
  if (waiting.any())
    llvm::report_fatal_error("launches wait for each other in a circle");
  return result;
}

} // namespace sluice::passes
