// How much of a device's memory a placement problem may be given so that the plan of its solution keeps the device's
// cap.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace sluice::passes {

/// The problem knows how many bytes values have; only a plan knows which are alive together, and of workspaces. So a
/// share of the caps is looked for, between shares whose plans were too large and those that left no placement or
/// memory unused. It is one for all devices: what does not fit on one of several alike goes to another, and does not
/// fit there.
class MemorySearch {
public:
  /// Bytes of each device, none where there is no cap.
  explicit MemorySearch(std::vector<std::optional<int64_t>> caps) : caps(std::move(caps)) {}

  /// What the problem is to be given now.
  std::vector<std::optional<int64_t>> given() const;

  /// What came of it: no placement, or a plan with these peaks.
  void noteNone();
  void notePlan(const std::vector<int64_t> &peaks);

  /// Whether another share is worth a try after what was noted last.
  bool goesOn() const;
  /// Forgets what was tried, and begins where the last plan fitted.
  void restart();

private:
  void tryBetween();

  std::vector<std::optional<int64_t>> caps;
  double share = 1, fitting = 1;   // to be given; of the last plan that fitted
  double least = 0;                // the largest that left no placement, or whose plan fitted
  std::optional<double> most = {}; // the smallest whose plan was too large
};

} // namespace sluice::passes
