// The simulator behind the ABI's table of exchanges.
#pragma once

#include "sluice/backend/collectives.h"

namespace sluice::sim {

const sluice_backend_collectives &collectives();

} // namespace sluice::sim
