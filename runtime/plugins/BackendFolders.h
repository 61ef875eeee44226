// Search folders of a plan's backends and transports.
#pragma once

#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace sluice::runtime {

/// The folders of SLUICE_BACKEND_PATH, then `folder`, then the folder of the running program's installation, then that
/// of the compiling installation. Without duplicates and empty entries.
std::vector<std::string> backendFoldersFor(const Plan &plan, const std::string &folder);

} // namespace sluice::runtime
