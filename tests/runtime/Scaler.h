// A hand-made artifact for two devices: batches of numbers go to an accelerator, are multiplied there by a factor that
// the host owns, and come back. It has every kind of copy, wait and state that a plan can have.
//
// step(x: i32[rows]) computes y = x * factor on the accelerator, adds the sum of y to `total` there, brings y back, and
// counts the call in `calls` on the host. Outputs: `sum` of y, made on the accelerator; `largest` of y, made on the
// host.
#pragma once

#include "runtime/plan/Plan.h"
#include "sluice/runtime/artifact.h"

#include <nlohmann/json.hpp>
#include <string>

namespace sluice::test {

inline constexpr int scalerCapacity = 64;

/// The numbers of the actions of `step`.
enum ScalerAction { refreshFactor, bringX, scale, returnY, count, askSum };

/// The plan; a test may change it.
nlohmann::ordered_json scalerPlan();

/// The table of functions with `plan` as its plan; `plan` must outlive it.
sluice_artifact scaler(const std::string &plan);
/// The structs of a plan of this text.
runtime::Plan parsed(const nlohmann::ordered_json &plan);

} // namespace sluice::test
