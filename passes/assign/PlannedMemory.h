// Memory of plans beyond the model of assignments: relayouts, and workspaces of kernels whose layouts differ from those
// that the model knows.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::passes {

class PlannedMemory {
public:
  /// By device: the modeled memory of an assignment of groups to devices, and the memory of its plan.
  void note(const std::vector<uint32_t> &devices, const std::vector<int64_t> &modelled,
            const std::vector<int64_t> &needed);

  /// The probable memory of a plan by device: the modeled memory, scaled as in the most similar assignment noted so
  /// far.
  std::vector<int64_t> likely(const std::vector<uint32_t> &devices, const std::vector<int64_t> &modelled) const;

private:
  struct Plan {
    std::vector<uint32_t> devices;
    std::vector<double> factors; // by device
  };
  std::vector<Plan> plans;
};

} // namespace sluice::passes
