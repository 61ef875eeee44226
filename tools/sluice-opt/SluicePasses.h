// The compiler's passes and phases by name.
#pragma once

#include <string>
#include <vector>

namespace sluice::tool {

/// Registers each pass as --sluice-<effect>, and each phase as --sluice-phase-<name>, which runs that phase alone.
void registerSluicePasses();

struct PassSummary {
  std::string argument; ///< without dashes
  std::string description;
};

/// The registered passes and phases of Sluice, in the order of the pipeline.
const std::vector<PassSummary> &sluicePasses();

} // namespace sluice::tool
