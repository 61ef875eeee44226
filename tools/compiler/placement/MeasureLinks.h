// Measures copies between two devices.
#pragma once

#include "tools/compiler/placement/Calibration.h"

namespace sluice::compiler {

/// One direction: latency and bytes a second, from copies of several sizes.
llvm::Expected<LinkCalibration> measureLink(const ir::TargetDevice &from, const ir::TargetDevice &to,
                                            const std::vector<runtime::BackendFile> &backends,
                                            const std::map<std::string, std::string> &settings);

} // namespace sluice::compiler
