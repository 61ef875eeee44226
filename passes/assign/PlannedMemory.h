// What plans need of memory beside what the model of assignments knows of: relayouts, and workspaces of kernels whose
// layouts differ from those that the model was told of.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::passes {

class PlannedMemory {
public:
  /// By device: what the model says of an assignment of groups to devices, and what its plan needs.
  void note(const std::vector<uint32_t> &devices, const std::vector<int64_t> &modelled,
            const std::vector<int64_t> &needed);

  /// What a plan is likely to need by device: as many times what the model says as the plan of the most similar
  /// assignment noted so far did.
  std::vector<int64_t> likely(const std::vector<uint32_t> &devices, const std::vector<int64_t> &modelled) const;

private:
  struct Plan {
    std::vector<uint32_t> devices;
    std::vector<double> factors; // by device
  };
  std::vector<Plan> plans;
};

} // namespace sluice::passes
