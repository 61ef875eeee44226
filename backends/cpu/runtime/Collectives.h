// Exchanges among threads of this process, or with other processes, behind the ABI's table.
#pragma once

#include "sluice/backend/collectives.h"

namespace sluice::cpu {

const sluice_backend_collectives &collectives();

} // namespace sluice::cpu
