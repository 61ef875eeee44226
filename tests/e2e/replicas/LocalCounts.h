// Fault injection: in one place of their program at a time, replicas use a count or sum of their own rows instead of
// all rows.
#pragma once

#include "tests/e2e/replicas/Replicated.h"

#include <functional>

namespace sluice::test {

/// A model on replicas with these numbers of rows, with this number of microbatches, or logical shards if not 0.
struct SharedModel {
  std::string text;
  std::vector<int64_t> shares;
  std::function<Values(uint64_t step, int64_t rows)> batch;
  bool syncBatchNorm = true;
  int64_t microbatches = 1, shards = 0;
  bool sharesOptimizer = false;
};

/// The number of places where a local count made the replicas differ from one device, and the places where it did not.
struct Plants {
  size_t noticed = 0;
  std::vector<std::string> unnoticed = {};

  std::string text() const;
};

/// Expects that the replicas agree with one device after several steps, then injects a local count in each place in
/// turn.
Plants plantLocalCounts(const SharedModel &model);

} // namespace sluice::test
