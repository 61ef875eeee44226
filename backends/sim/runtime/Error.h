// Errors inside the simulator; Plugin.cpp turns them into a status and last_error.
#pragma once

#include "backends/exchange/Error.h"

namespace sluice::sim {

using exchange::Error;

} // namespace sluice::sim
