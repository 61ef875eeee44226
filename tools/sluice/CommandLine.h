// Parses the command line of `sluice`.
#pragma once

#include "tools/sluice/Commands.h"
#include <vector>

namespace sluice::tool {

/// Adds the flags common to all commands.
void addTalk(CLI::App &command, Talk &talk);

/// The error if the arguments name an unknown command or flag, with the nearest known one; empty if they do not.
std::string unknownName(const CLI::App &app, const std::vector<std::string> &arguments);

} // namespace sluice::tool
