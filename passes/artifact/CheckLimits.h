// Checks the planned memory of each device against its limit in --devices.
#pragma once

#include "passes/driver/PassTable.h"

namespace sluice::passes {

/// Reports the first device whose planned peak memory exceeds its limit. For a module in phase `planned`.
mlir::LogicalResult checkLimits(Compilation &compilation);

} // namespace sluice::passes
