// Errors inside the simulator.
#pragma once

#include "backends/exchange/Error.h"

namespace sluice::sim {

using exchange::Error;

} // namespace sluice::sim
