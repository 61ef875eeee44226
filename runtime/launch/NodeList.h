// Slurm's compressed lists of node names.
#pragma once

#include <string>

namespace sluice::runtime {

/// The first node: "node003" of "node[003-007,9],gpu1". Throws a usage error if there is none or if its name is
/// invalid. `list` is the value of SLURM_STEP_NODELIST, which the error names.
std::string firstNode(const std::string &list);

} // namespace sluice::runtime
