// What states begin with where that is data: the artifact brings it, or the file of values beside it.
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

/// Those of the states that `chosen` picks. All of them are read, and checked against what the plan says: an error names the
/// file and the tensor.
std::vector<InitialValue> initialValues(const Plan &plan, const sluice_artifact &artifact,
                                        const std::function<bool(const State &)> &chosen);

} // namespace sluice::runtime
