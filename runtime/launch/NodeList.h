// Slurm's way of writing the names of many machines.
#pragma once

#include <string>

namespace sluice::runtime {

/// The first of them: "node003" of "node[003-007,9],gpu1". Throws an error of usage if there is none.
std::string firstNode(const std::string &list);

} // namespace sluice::runtime
