// All placements of a small model, one by one, for tests that hold the compiler's choice against them.
#pragma once

#include "passes/assign/AssignmentModel.h"
#include "tests/e2e/devices/Placed.h"
#include "tools/compiler/placement/Candidates.h"

namespace sluice::test {

class Assignments {
public:
  explicit Assignments(const PlacementCase &asked);
  ~Assignments();

  /// How many there are of the groups and states that the user has left open.
  int64_t count() const { return total; }
  /// The devices of all groups in one of them.
  std::vector<uint32_t> at(int64_t number) const;

  /// The one that has all it can on a device.
  std::vector<uint32_t> on(uint32_t device) const;

  /// What one is compiled to, and whether that keeps the caps.
  compiler::Candidate compiled(const std::vector<uint32_t> &devices);
  /// What the model of assignments says of it once it knows the plan's kernels.
  passes::AssignmentFigures judged(const std::vector<uint32_t> &devices, const compiler::Evaluation &plan) const;

  /// The least seconds of all that keep the caps, and the least sum of work and copies of all.
  struct Best {
    std::optional<double> seconds;
    double serialSeconds = 0;
  };
  Best best();

private:
  struct Model;
  std::unique_ptr<Model> model;
  std::vector<std::pair<uint32_t, std::vector<uint32_t>>> open; // groups, and where they can be
  int64_t total = 1;
};

/// A graph of up to twelve free groups on one to three accelerators with links from 100 MB/s to 100 GB/s; half of them
/// have caps from 30 % to 110 % of what everything on one accelerator needs. A seed gives one case.
PlacementCase smallPlacement(uint32_t seed);

/// One of the models of `graphs/`.
std::string graphNamed(const std::string &name);

} // namespace sluice::test
