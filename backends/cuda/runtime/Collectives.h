// Exchanges among devices, of this process and of others, by NCCL, behind the ABI's table.
#pragma once

#include "sluice/backend/collectives.h"

namespace sluice::cuda {

const sluice_backend_collectives &collectives();

} // namespace sluice::cuda
