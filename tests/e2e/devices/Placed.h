// Models whose devices the compiler chooses, for end-to-end tests.
#pragma once

#include "passes/analysis/CostModel.h"
#include "tests/e2e/Harness.h"
#include "tools/compiler/placement/Evaluation.h"
#include "tools/compiler/placement/Request.h"
#include "tools/compiler/placement/report/Report.h"
#include <memory>
#include <string>

namespace sluice::test {

/// What is asked of a placement: a target of the host and virtual accelerators, whose links are alike.
struct PlacementCase {
  std::string model; ///< text
  int accelerators = 1;
  double bytesPerSecond = 12e9, latency = 5e-6;
  std::vector<int64_t> caps; ///< of the accelerators, bytes; empty: none
  std::string calibration;   ///< the file of measured costs; empty: devices' descriptions alone

  /// "cpu,sim:0,sim:1"
  std::string devices() const;
  compiler::PlacementRequest request() const;
  /// Settings of the simulator with these links.
  std::string sim(int seed = 0) const;
};

/// A model, placed as was decided.
struct Placed {
  std::string text; ///< in phase `fused`
  compiler::PlacementReport report;
  passes::CostModel costs; ///< that it was decided by

  /// Its seconds; it must be possible.
  double alternative(const std::string &name) const;
  std::unique_ptr<Compiled> compile(const RunOptions &run) const;
};

/// Lets the compiler choose. An error is thrown as `std::runtime_error`.
Placed place(const PlacementCase &asked);

/// The model as it is compiled if nobody chooses, for the target of `asked`: what the user has left open is on `first`,
/// and whatever must cross is copied.
std::string everythingOn(const PlacementCase &asked, const std::string &first);

/// What such a model comes to by the cost model.
compiler::Evaluation evaluated(const std::string &model, const passes::CostModel &costs);

/// The alternatives that the report must not be slower than, and the device that takes what is left open in them.
std::map<std::string, std::string> knownAlternatives(const compiler::PlacementReport &report);

/// No alternative is faster than what was chosen: those of the report, and those that are compiled without it.
void expectFastest(const PlacementCase &asked, const Placed &placed);

/// The plan keeps the caps, and is the one that the report speaks of.
void expectWithinCaps(const PlacementCase &asked, const Placed &placed, const Compiled &model);

/// The copies that the report predicts for each call are those that the engines count.
void expectCopies(const Placed &placed, Compiled &model, const Values &inputs, int64_t rows);

/// The time from one call's end to the next one's by the clock of the virtual accelerators.
double clockSeconds(Compiled &model, const Values &inputs, int64_t rows);

/// Whether SLUICE_TEST_FULL asks for all cases, not a part of them.
bool runsAll();

} // namespace sluice::test
