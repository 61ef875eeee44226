// The commands of `sluice`: each registers itself on the command line and runs afterwards.
#pragma once

#include "llvm/Support/Error.h"
#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace sluice::tool {

/// Flags common to all commands.
struct Talk {
  bool json = false;
  bool quiet = false;
  bool verbose = false;
};

/// The action of a command after its flags are parsed. Results go to stdout, messages to stderr.
using Action = std::function<llvm::Error(const Talk &)>;

struct Command {
  CLI::App *app;
  Action run;
};

Command addCompile(CLI::App &app);
Command addConformance(CLI::App &app);
Command addDevices(CLI::App &app);
Command addImport(CLI::App &app);
Command addPlace(CLI::App &app);
Command addScale(CLI::App &app);
Command addShow(CLI::App &app);
Command addVerify(CLI::App &app);

} // namespace sluice::tool
