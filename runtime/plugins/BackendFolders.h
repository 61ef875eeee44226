// Search folders of a plan's backends and transports.
#pragma once

#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace sluice::runtime {

/// The folders of SLUICE_BACKEND_PATH, then `folder`, then lib/sluice/backends of the installation that contains the
/// running program, then the folder in the plan. Without empty entries; the last two are added only if not yet present.
std::vector<std::string> backendFoldersFor(const Plan &plan, const std::string &folder);

} // namespace sluice::runtime
