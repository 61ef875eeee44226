// Errors inside the run half; Handles.h turns them into a status and last_error.
#pragma once

#include "backends/exchange/Error.h"

namespace sluice::cuda {

using exchange::Error;

} // namespace sluice::cuda
