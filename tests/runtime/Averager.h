// A hand-written artifact for any number of replicas, each with a virtual accelerator. Its results are exact and depend
// only on the whole batch, not on the number of replicas.
//
// train_step(x: i32[rows], each below 100), where i is a row's number in the whole call and n the number of rows. On
// the accelerator: y[i] = x[i] + i; m, the mean of x[i] * (i + 1); weight += m. The mean is a sum reduced over all
// replicas, divided by a count that the runtime sets. On the host: total += m. Outputs: loss = m, and y. predict(x)
// outputs only y.
#pragma once

#include "PlanJson.h"
#include "runtime/plan/Plan.h"

namespace sluice::test {

inline constexpr int averagerBatch = 64;

/// The numbers of the actions of `train_step` for several replicas; a single replica has no `reduce`.
enum AveragerAction { refreshRows, refreshFirst, bringBatch, add, reduce, update, returnMean, note, askRows };

/// The plan; tests may modify it.
Json averagerPlan(int replicas);

/// The table of functions with `plan` as its plan; `plan` must outlive it.
sluice_artifact averager(const std::string &plan);

} // namespace sluice::test
