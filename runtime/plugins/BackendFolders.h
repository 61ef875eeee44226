// Where the backends and transports of a plan lie.
#pragma once

#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace sluice::runtime {

/// The folders of SLUICE_BACKEND_PATH, then `folder`, then those of the installation that the running program is part of
/// and of the one that compiled the plan; each once, and only those that are said.
std::vector<std::string> backendFoldersFor(const Plan &plan, const std::string &folder);

} // namespace sluice::runtime
