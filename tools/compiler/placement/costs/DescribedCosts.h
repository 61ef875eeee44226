// Kernel times on a device from published peaks and its own description, for devices without measurements.
#pragma once

#include "passes/analysis/CostModel.h"
#include "tools/compiler/Backends.h"
#include "tools/compiler/placement/costs/Calibration.h"

namespace sluice::compiler {

/// For a device whose code is compiled with these options. `known` is its description, null if this
/// machine lacks it.
passes::DeviceCosts describedCosts(const ir::TargetDevice &device, const runtime::BackendDevice *known,
                                   const CompileOptions &options);

/// Measured rates; kinds without measurements are estimated as a share of the published peaks.
passes::DeviceCosts measuredCosts(const DeviceCalibration &measured, const passes::DeviceCosts &described);

} // namespace sluice::compiler
