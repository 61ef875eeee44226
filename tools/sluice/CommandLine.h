// Reading the command line of `sluice`.
#pragma once

#include "tools/sluice/Commands.h"
#include <vector>

namespace sluice::tool {

/// Adds the flags that every command has.
void addTalk(CLI::App &command, Talk &talk);

/// Why the arguments name a command or flag that is not there, with the nearest one that is; empty if they do not.
std::string unknownName(const CLI::App &app, const std::vector<std::string> &arguments);

} // namespace sluice::tool
