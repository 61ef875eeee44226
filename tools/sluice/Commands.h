// The commands of `sluice`: each adds itself to the command line and runs afterwards.
#pragma once

#include "llvm/Support/Error.h"
#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace sluice::tool {

/// Flags that every command has.
struct Talk {
  bool json = false;
  bool quiet = false;
  bool verbose = false;
};

/// What a command does once its flags are read; results go to stdout, talk to stderr.
using Action = std::function<llvm::Error(const Talk &)>;

struct Command {
  CLI::App *app;
  Action run;
};

Command addCompile(CLI::App &app);
Command addConformance(CLI::App &app);
Command addDevices(CLI::App &app);
Command addPlace(CLI::App &app);
Command addScale(CLI::App &app);
Command addShow(CLI::App &app);
Command addVerify(CLI::App &app);

} // namespace sluice::tool
