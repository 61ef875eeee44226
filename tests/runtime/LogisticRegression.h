// A hand-made artifact: softmax regression on 28x28 images, as the compiler would emit it. It lets the runtime and the
// verbs be tested without a compiler.
//
// The weight lies in tiles, `f32[10, 784]` as [2][784][8], so that packing is on the path of every test.
#pragma once

#include "sluice/runtime/artifact.h"

#include <string>

namespace sluice::test {

inline constexpr int capacity = 64, pixels = 784, classes = 10, tile = 8, tiles = 2;

/// The artifact's plan; a test may change it.
std::string logisticRegressionPlan();

/// The table of generated functions with `plan` as its plan; `plan` must outlive it.
sluice_artifact logisticRegression(const std::string &plan);

} // namespace sluice::test
