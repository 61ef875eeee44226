// Random models with dependences between rows: means, masked means, sums and maxima over the batch, batch norm,
// metrics, and outputs per row.
#pragma once

#include "tests/e2e/Harness.h"
#include <cstdint>
#include <string>

namespace sluice::test {

/// A model of phase `model` that trains with momentum, and its inputs.
struct BatchGraph {
  BatchGraph(uint64_t seed, int64_t capacity);

  std::string text;
  std::vector<std::string> states;

  /// Inputs for a call with this many rows.
  static Values batch(uint64_t seed, int64_t rows);
};

} // namespace sluice::test
