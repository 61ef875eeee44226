// Initialization of a model's states.
#pragma once

#include "runtime/instance/Instance.h"

namespace sluice::runtime {

/// Runs the entry `init`, if present, with the key derived from the seed.
void initialise(Instance &instance, uint64_t seed);

} // namespace sluice::runtime
