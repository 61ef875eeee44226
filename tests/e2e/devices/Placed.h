// Models with devices chosen by the compiler, for end-to-end tests.
#pragma once

#include "passes/analysis/CostModel.h"
#include "passes/assign/PlacementRequest.h"
#include "passes/assign/search/Evaluation.h"
#include "tests/e2e/Harness.h"
#include "tools/compiler/placement/report/Report.h"
#include <memory>
#include <string>

namespace sluice::test {

/// A placement problem: a target of the host and virtual accelerators with equal links.
struct PlacementCase {
  std::string model; ///< text of the model
  int accelerators = 1;
  double bytesPerSecond = 12e9, latency = 5e-6;
  std::vector<int64_t> caps; ///< memory caps of the accelerators in bytes; empty: none
  std::string calibration;   ///< file of measured costs; empty: the devices' descriptions

  /// "cpu,sim:0,sim:1"
  std::string devices() const;
  passes::PlacementRequest request() const;
  /// Simulator settings with these links.
  std::string sim(int seed = 0) const;
};

/// A model with the chosen placement.
struct Placed {
  std::string text; ///< in phase `fused`
  compiler::PlacementReport report;
  passes::CostModel costs; ///< costs used for the choice

  /// The seconds of an alternative, which must be feasible.
  double alternative(const std::string &name) const;
  std::unique_ptr<Compiled> compile(const RunOptions &run) const;
};

/// Runs the compiler's placement. Errors are thrown as `std::runtime_error`.
Placed place(const PlacementCase &asked);

/// The model without placement, compiled for the target of `asked`: everything without a pin is on `first`, and copies
/// are inserted where needed.
std::string everythingOn(const PlacementCase &asked, const std::string &first);

/// The cost model's evaluation of such a model.
passes::Evaluation evaluated(const std::string &model, const passes::CostModel &costs);

/// The alternatives that must not be faster than the report's choice, with the device of the unpinned parts.
std::map<std::string, std::string> knownAlternatives(const compiler::PlacementReport &report);

/// Expects that no alternative is faster than the choice, neither those of the report nor those compiled separately.
void expectFastest(const PlacementCase &asked, const Placed &placed);

/// Expects that the plan fits the caps and is the plan of the report.
void expectWithinCaps(const PlacementCase &asked, const Placed &placed, const Compiled &model);

/// Expects that the report's predicted copies per call equal the engines' counts.
void expectCopies(const Placed &placed, Compiled &model, const Values &inputs, int64_t rows);

/// Seconds between the ends of consecutive calls, by the clock of the virtual accelerators.
double clockSeconds(Compiled &model, const Values &inputs, int64_t rows);

/// Whether SLUICE_TEST_FULL requests all cases.
bool runsAll();

} // namespace sluice::test
