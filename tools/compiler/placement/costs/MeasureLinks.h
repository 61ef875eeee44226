// Measures copies between two devices.
#pragma once

#include "runtime/device/DeviceContext.h"
#include "tools/compiler/placement/costs/Measure.h"

namespace sluice::compiler {

/// One direction by the clock of the devices' backend where it takes the host's work too, as nothing else knows its
/// time; else by the host's clock, from before a copy is put into its queue until the host knows that it is done: a
/// backend's own clock need not see what its copies cost the host.
LinkCalibration timeLink(const ir::TargetDevice &from, const ir::TargetDevice &to, runtime::DeviceContext &context);

/// One direction: latency and bytes a second, from copies of several sizes.
llvm::Expected<LinkCalibration> measureLink(const ir::TargetDevice &from, const ir::TargetDevice &to,
                                            const std::vector<runtime::BackendFile> &backends,
                                            const MeasureRequest &request);

} // namespace sluice::compiler
