// A hand-written artifact: softmax regression on 28x28 images, in the form that the compiler emits. With it the runtime
// and the verbs are tested without a compiler.
//
// The weight `f32[10, 784]` is tiled as [2][784][8], so that every test exercises packing.
#pragma once

#include "sluice/runtime/artifact.h"

#include <string>

namespace sluice::test {

inline constexpr int capacity = 64, pixels = 784, classes = 10, tile = 8, tiles = 2;

/// The artifact's plan; tests may modify it.
std::string logisticRegressionPlan();

/// The table of generated functions with `plan` as its plan; `plan` must outlive it.
sluice_artifact logisticRegression(const std::string &plan);

} // namespace sluice::test
