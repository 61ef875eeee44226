// Predicts the communication of replicas.
#pragma once

#include "passes/driver/PassTable.h"

namespace sluice::passes {

/// Predicts the collectives of each entry point in consecutive calls, from the plan of `build-artifact`.
void forecastReplicas(Compilation &compilation);

} // namespace sluice::passes
