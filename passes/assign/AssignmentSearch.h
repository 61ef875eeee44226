// Searches the fastest assignments of a placement graph's groups to devices, as predicted by the schedule model.
#pragma once

#include "passes/assign/AssignmentModel.h"
#include <map>

namespace sluice::passes {

/// Up to this number all assignments are evaluated.
inline constexpr int64_t kMostAssignments = 4096;

struct FoundAssignment {
  std::vector<uint32_t> devices; ///< per group
  AssignmentFigures figures;
};

/// The search is deterministic: it is bounded by the number and size of the assignments evaluated, not by time.
class AssignmentSearch {
public:
  /// `caps` in bytes, by device. The graph and the model must outlive the search.
  AssignmentSearch(const PlacementGraph &graph, const AssignmentModel &model, std::vector<std::optional<int64_t>> caps);

  /// The groups that the user has not placed.
  llvm::ArrayRef<uint32_t> choices() const { return open; }
  /// The number of assignments of the open groups; none if it overflows.
  std::optional<int64_t> assignments() const { return count; }
  bool isExhaustive() const { return count && *count <= kMostAssignments; }
  int64_t judged() const { return judgements; }

  /// Adds a starting point, in which each group must be on a device that can run it. An exhaustive search treats it as
  /// any other assignment.
  void offer(const std::vector<uint32_t> &devices) { judge(devices); }
  /// Evaluates all assignments or, if there are too many, walks from the best starting points: moves one group or two
  /// as long as that improves.
  void run();

  /// The fastest assignments found that fit, the fastest first. Of equal assignments the first one offered or visited
  /// is kept.
  const std::vector<FoundAssignment> &found() const { return best; }
  /// Of the assignments that do not fit, the one with the least excess.
  const std::optional<FoundAssignment> &tightest() const { return nearest; }

private:
  using Score = std::pair<double, double>; // excess memory, seconds

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
  std::vector<uint32_t> open;                       // groups with several devices
  std::vector<std::pair<uint32_t, uint32_t>> pairs; // pairs of open groups that walks move together
  std::optional<int64_t> count = 1;
  int64_t judgements = 0;
  std::map<std::vector<uint32_t>, Score> known;
  std::vector<FoundAssignment> best;
  std::optional<FoundAssignment> nearest;
  double leastExcess = 0;
};

} // namespace sluice::passes
