// A hand-made artifact for any number of replicas, each with a virtual accelerator: what they compute together is known
// from the whole batch alone, and exact, whatever the number of replicas.
//
// train_step(x: i32[rows], each below 100), where i is the number of a row in the whole call and n its rows: on the
// accelerator y[i] = x[i] + i, the mean m of x[i] * (i + 1), as a sum that all replicas reduce over a count that the
// runtime sets, and weight += m; on the host, total += m. Outputs: loss = m, and y. predict(x) gives y alone.
#pragma once

#include "PlanJson.h"
#include "runtime/plan/Plan.h"

namespace sluice::test {

inline constexpr int averagerBatch = 64;

/// The numbers of the actions of `train_step` of several replicas; one has no `reduce`.
enum AveragerAction { refreshRows, refreshFirst, bringBatch, add, reduce, update, returnMean, note, askRows };

/// The plan; a test may change it.
Json averagerPlan(int replicas);

/// The table of functions with `plan` as its plan; `plan` must outlive it.
sluice_artifact averager(const std::string &plan);

} // namespace sluice::test
