// Searches the memory limits of a placement problem with which the plan of its solution stays within the devices' caps.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace sluice::passes {

/// The problem only has the sizes of values; lifetimes and workspaces are known from a plan. So the search varies a
/// share of the caps, between shares whose plans were too large and shares that left no placement or unused memory. One
/// share applies to all devices: groups that exceed one of several equal devices would move to another and exceed that.
class MemorySearch {
public:
  /// Bytes per device; none if it has no cap.
  explicit MemorySearch(std::vector<std::optional<int64_t>> caps) : caps(std::move(caps)) {}

  /// The limits for the next solution.
  std::vector<std::optional<int64_t>> given() const;

  /// Records the outcome: no placement, or a plan with these peaks.
  void noteNone();
  void notePlan(const std::vector<int64_t> &peaks);

  /// Whether another share should be tried after the last outcome.
  bool goesOn() const;
  /// Resets the search to the last share whose plan fitted.
  void restart();

private:
  void tryBetween();

  std::vector<std::optional<int64_t>> caps;
  double share = 1, fitting = 1;   // next; of the last plan that fitted
  double least = 0;                // the largest without a placement, or whose plan fitted
  std::optional<double> most = {}; // the smallest whose plan was too large
};

} // namespace sluice::passes
