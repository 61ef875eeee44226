// Measures copies between two devices.
#pragma once

#include "runtime/device/DeviceContext.h"
#include "tools/compiler/placement/costs/Measure.h"

namespace sluice::compiler {

/// Times one direction. If the devices' backend also runs the host's work, its own clock is used, because no other
/// clock has its time. Else the host's clock is used, from before a copy is queued until the host has been notified: a
/// backend's clock may not include the host's cost of a copy.
LinkCalibration timeLink(const ir::TargetDevice &from, const ir::TargetDevice &to, runtime::DeviceContext &context);

/// One direction: latency and bytes per second, from copies of several sizes.
llvm::Expected<LinkCalibration> measureLink(const ir::TargetDevice &from, const ir::TargetDevice &to,
                                            const std::vector<runtime::BackendFile> &backends,
                                            const MeasureRequest &request);

} // namespace sluice::compiler
