// Initialization of a model's states.
#pragma once

#include "runtime/instance/Instance.h"

namespace sluice::runtime {

/// Runs the entry `init`, if present. Its key is the two words of the seed.
void initialise(Instance &instance, uint64_t seed);

} // namespace sluice::runtime
