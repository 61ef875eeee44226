// Slurm's compressed lists of node names.
#pragma once

#include <string>

namespace sluice::runtime {

/// The first node: "node003" of "node[003-007,9],gpu1". Throws a usage error if the list is empty.
std::string firstNode(const std::string &list);

} // namespace sluice::runtime
