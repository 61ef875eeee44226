// A model's first states.
#pragma once

#include "runtime/instance/Instance.h"

namespace sluice::runtime {

/// Runs the entry `init`, if there is one, with the key that the seed gives.
void initialise(Instance &instance, uint64_t seed);

} // namespace sluice::runtime
