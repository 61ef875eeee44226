// Entry point of every executable: parses the command line, runs the verb, and converts errors to exit codes.
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/files/Process.h"
#include "runtime/help/Arguments.h"
#include "runtime/runner/verbs/Verbs.h"

#include <algorithm>
#include <string_view>
#include <unistd.h>

using namespace sluice::runtime;

static int runVerb(const Options &options, Processes &processes) {
  switch (options.verb) {
  case Verb::train:
    return runTrain(options, processes);
  case Verb::eval:
    return runEval(options, processes);
  case Verb::predict:
    return runPredict(options, processes);
  case Verb::generate:
    return runGenerate(options, processes);
  case Verb::bench:
    return runBench(options, processes);
  case Verb::info:
    break;
  }
  return static_cast<int>(ExitCode::internal);
}

static int run(const Options &options) {
  if (options.verb == Verb::info)
    return runInfo(options); // describes the file, so any process may print it
  Processes processes(options);
  int code = 0;
  Status status = guarded([&] { code = runVerb(processes.optionsHere(options), processes); });
  if (!status.ok()) {
    status = processes.explained(status);
    throw Error(status.code, status.message);
  }
  if (code == 0)
    processes.finish();
  return code;
}

/// ExitCode::peerLost is internal to a run of several processes: launchers see it as a lost device.
static ExitCode exitCodeFor(const Status &status) {
  return status.code == ExitCode::peerLost ? ExitCode::exhausted : status.code;
}

/// Prints the error on stderr and, with --json, as an object on stdout.
static int fail(const std::string &program, const Status &status, bool json) {
  std::string message = status.message.empty() ? "out of memory" : status.message;
  talk(sluice::help::errorText(program.substr(program.rfind('/') + 1), message));
  if (json) // a failure of stdout itself is already on stderr
    (void)guarded([&] {
      Json object = {{"code", static_cast<int>(exitCodeFor(status))}, {"error", message}};
      printLine(object.dump(-1, ' ', false, Json::error_handler_t::replace)); // file names need not be UTF-8
    });
  return static_cast<int>(exitCodeFor(status));
}

int main(int argc, char **argv) {
  sluice::files::prepareProcess();
  int code = 0;
  // The arguments may be invalid, so --json is searched for here again.
  bool json = std::any_of(argv, argv + argc, [](std::string_view argument) { return argument == "--json"; });
  std::string program = argc > 0 ? argv[0] : "sluice";
  Status status = guarded([&] {
    std::optional<Options> options = parseCommandLine(argc, argv);
    if (!options)
      return;
    options->onLate = [&](const Error &error) { // runs in another thread: stuck threads are not waited for
      _exit(fail(program, {error.code(), error.what()}, json));
    };
    code = run(*options);
  });
  return status.ok() ? code : fail(program, status, json);
}
