// What kernels take on a device by what its makers publish and what it says of itself, where nothing was measured.
#pragma once

#include "passes/analysis/CostModel.h"
#include "tools/compiler/Backends.h"
#include "tools/compiler/placement/costs/Calibration.h"

namespace sluice::compiler {

/// Of a device for which code is made with these settings of its backend; `known` is what it says of itself, null if it is not
/// here.
passes::DeviceCosts describedCosts(const ir::TargetDevice &device, const runtime::BackendDevice *known,
                                   const std::string &settings);

/// What was measured; kinds that were not have their share of what is published.
passes::DeviceCosts measuredCosts(const DeviceCalibration &measured, const passes::DeviceCosts &described);

} // namespace sluice::compiler
