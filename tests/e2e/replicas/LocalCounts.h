// Replicas that take a count, or a sum, of their own rows for that of all rows, in one place of their program after the other.
#pragma once

#include "tests/e2e/replicas/Replicated.h"

#include <functional>

namespace sluice::test {

/// A model on replicas that have these rows each, in so many microbatches, or logical shards if there are any.
struct SharedModel {
  std::string text;
  std::vector<int64_t> shares;
  std::function<Values(uint64_t step, int64_t rows)> batch;
  bool syncBatchNorm = true;
  int64_t microbatches = 1, shards = 0;
  bool sharesOptimizer = false;
};

/// In how many places a local count made the replicas differ from one device, and the places where it did not.
struct Plants {
  size_t noticed = 0;
  std::vector<std::string> unnoticed = {};

  std::string text() const;
};

/// Demands that the replicas are one device after some steps, and plants a local count in one place after the other.
Plants plantLocalCounts(const SharedModel &model);

} // namespace sluice::test
