// The fastest assignments of a placement graph's groups to devices, as the model of their schedules judges them.
#pragma once

#include "passes/assign/AssignmentModel.h"
#include <map>

namespace sluice::passes {

/// So many assignments are judged one by one.
inline constexpr int64_t kMostAssignments = 4096;

struct FoundAssignment {
  std::vector<uint32_t> devices; ///< per group
  AssignmentFigures figures;
};

/// What is asked decides what is done: what bounds the search is the number of assignments judged and their size.
class AssignmentSearch {
public:
  /// `caps` in bytes, by device. The graph and the model must outlive the search.
  AssignmentSearch(const PlacementGraph &graph, const AssignmentModel &model, std::vector<std::optional<int64_t>> caps);

  /// The groups that the user has left open.
  llvm::ArrayRef<uint32_t> choices() const { return open; }
  /// How many assignments there are of the groups that the user has left open; none if more than can be counted.
  std::optional<int64_t> assignments() const { return count; }
  bool isExhaustive() const { return count && *count <= kMostAssignments; }
  int64_t judged() const { return judgements; }

  /// A place to set out from: an assignment in which each group is where it can run. For exhaustive searches it is one
  /// of many.
  void offer(const std::vector<uint32_t> &devices) { judge(devices); }
  /// Judges all assignments or, if they are too many, walks from the best of those that were offered: a group, or two,
  /// goes elsewhere as long as that pays.
  void run();

  /// The fastest assignments found that fit, the fastest first; of equal ones, the one that was offered or met first.
  const std::vector<FoundAssignment> &found() const { return best; }
  /// Of those that do not fit, the one with the least excess.
  const std::optional<FoundAssignment> &tightest() const { return nearest; }

private:
  using Score = std::pair<double, double>; // excess of memory, seconds

  Score judge(const std::vector<uint32_t> &devices);
  void keep(const std::vector<uint32_t> &devices, const AssignmentFigures &figures);
  double excessOf(const AssignmentFigures &figures) const;
  bool isTooSlow(const std::vector<uint32_t> &devices) const;
  void judgeAll();
  void walkFrom(std::vector<uint32_t> devices);
  bool improve(std::vector<uint32_t> &devices, Score &score);
  bool tryMove(std::vector<uint32_t> &devices, Score &score, llvm::ArrayRef<uint32_t> groups, uint32_t to);
  bool isSpent() const;
  std::vector<std::pair<uint32_t, uint32_t>> findPairs() const;

  const PlacementGraph &graph;
  const AssignmentModel &model;
  std::vector<std::optional<int64_t>> caps;
  std::vector<uint32_t> open;                       // groups with a choice
  std::vector<std::pair<uint32_t, uint32_t>> pairs; // of them, that walks move together
  std::optional<int64_t> count = 1;
  int64_t judgements = 0;
  std::map<std::vector<uint32_t>, Score> known;
  std::vector<FoundAssignment> best;
  std::optional<FoundAssignment> nearest;
  double leastExcess = 0;
};

} // namespace sluice::passes
