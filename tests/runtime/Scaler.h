// A hand-written artifact for two devices. Batches of numbers are copied to an accelerator, multiplied there by a
// factor that the host owns, and copied back. It contains every kind of copy, wait and state that a plan can have.
//
// step(x: i32[rows]) computes y = x * factor on the accelerator, adds the sum of y to `total` there, and copies y back.
// It counts the call in `calls` on the host. Outputs: `sum` of y, computed on the accelerator; `largest` of y, computed
// on the host.
#pragma once

#include "runtime/plan/Plan.h"
#include "sluice/runtime/artifact.h"

#include <nlohmann/json.hpp>
#include <string>

namespace sluice::test {

inline constexpr int scalerCapacity = 64;

/// The numbers of the actions of `step`.
enum ScalerAction { refreshFactor, bringX, scale, returnY, count, askSum };

/// The plan; tests may modify it.
nlohmann::ordered_json scalerPlan();

/// The table of functions with `plan` as its plan; `plan` must outlive it.
sluice_artifact scaler(const std::string &plan);
/// The parsed structs of a plan.
runtime::Plan parsed(const nlohmann::ordered_json &plan);

} // namespace sluice::test
