// Initial data of states, from the artifact or its file of values.
#pragma once

#include "runtime/io/TensorSource.h"
#include "runtime/plan/Plan.h"
#include "sluice/runtime/artifact.h"

#include <functional>
#include <string>
#include <vector>

namespace sluice::runtime {

/// The first value of a state.
struct InitialValue {
  const State *state;
  TensorSource source;
};

/// The initial values of the states that have data and that `chosen` selects. All are read, and their types, shapes and
/// checksums are compared with the plan. Errors contain the file and the tensor.
std::vector<InitialValue> initialValues(const Plan &plan, const sluice_artifact &artifact,
                                        const std::function<bool(const State &)> &chosen);

} // namespace sluice::runtime
