// Enumerates all placements of a small model, to compare the compiler's choice with them.
#pragma once

#include "passes/assign/AssignmentModel.h"
#include "passes/assign/search/Candidates.h"
#include "tests/e2e/devices/Placed.h"

namespace sluice::test {

class Assignments {
public:
  explicit Assignments(const PlacementCase &asked);
  ~Assignments();

  /// The number of placements of the groups and states without pins.
  int64_t count() const { return total; }
  /// The devices of all groups in placement `number`.
  std::vector<uint32_t> at(int64_t number) const;

  /// The placement with as many groups as possible on a device.
  std::vector<uint32_t> on(uint32_t device) const;

  /// The compiled plan of a placement, and whether it fits the caps.
  passes::Candidate compiled(const std::vector<uint32_t> &devices);
  /// The assignment model's figures for a placement, given the plan's kernels.
  passes::AssignmentFigures judged(const std::vector<uint32_t> &devices, const passes::Evaluation &plan) const;

  /// The minimum seconds of all placements within the caps, and the minimum sum of work and copies of all placements.
  struct Best {
    std::optional<double> seconds;
    double serialSeconds = 0;
  };
  Best best();

private:
  struct Model;
  std::unique_ptr<Model> model;
  std::vector<std::pair<uint32_t, std::vector<uint32_t>>> open; // groups, and their possible devices
  int64_t total = 1;
};

/// A graph of up to twelve free groups on one to three accelerators, with links from 100 MB/s to 100 GB/s. Half of the
/// graphs have caps from 30 % to 110 % of the memory of everything on one accelerator. A seed determines one case.
PlacementCase smallPlacement(uint32_t seed);

/// One of the models of `graphs/`.
std::string graphNamed(const std::string &name);

} // namespace sluice::test
