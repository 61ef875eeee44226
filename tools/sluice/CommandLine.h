// Parses the command line of `sluice`.
#pragma once

#include "tools/sluice/Commands.h"

namespace sluice::tool {

/// Adds the flags common to all commands.
void addTalk(CLI::App &command, Talk &talk);

} // namespace sluice::tool
