// Errors inside the run half.
#pragma once

#include "backends/exchange/Error.h"

namespace sluice::cuda {

using exchange::Error;

} // namespace sluice::cuda
