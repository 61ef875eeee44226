#include "tools/sluice/CommandLine.h"

#include "runtime/help/HelpFormatter.h"

namespace sluice::tool {

void addTalk(CLI::App &command, Talk &talk) {
  help::beginGroup(command, help::kCommon);
  command.add_flag("--json", talk.json, "Print the result as JSON");
  CLI::Option *quiet = command.add_flag("-q,--quiet", talk.quiet, "Print only results and errors");
  command.add_flag("-v,--verbose", talk.verbose, "Print the progress of the work")->excludes(quiet);
}

} // namespace sluice::tool
