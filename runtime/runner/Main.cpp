// The start of every executable: parse, run the verb, turn errors into exit codes.
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/files/Process.h"
#include "runtime/runner/Verbs.h"

#include <algorithm>
#include <string_view>

using namespace sluice::runtime;

static int runVerb(const Options &options) {
  switch (options.verb) {
  case Verb::train:
    return runTrain(options);
  case Verb::eval:
    return runEval(options);
  case Verb::predict:
    return runPredict(options);
  case Verb::bench:
    return runBench(options);
  case Verb::info:
    return runInfo(options);
  }
  return static_cast<int>(ExitCode::internal);
}

/// The error in words on stderr, and with --json as an object on stdout.
static int fail(const std::string &program, const Status &status, bool json) {
  std::string message = status.message.empty() ? "out of memory" : status.message;
  talk(concat(program.substr(program.rfind('/') + 1), ": error: ", message));
  if (json) // that stdout is what failed, stderr has said
    (void)guarded([&] {
      Json object = {{"code", static_cast<int>(status.code)}, {"error", message}};
      printLine(object.dump(-1, ' ', false, Json::error_handler_t::replace)); // file names need not be UTF-8
    });
  return static_cast<int>(status.code);
}

int main(int argc, char **argv) {
  sluice::files::prepareProcess();
  int code = 0;
  Status status = guarded([&] {
    if (std::optional<Options> options = parseCommandLine(argc, argv))
      code = runVerb(*options);
  });
  if (status.ok())
    return code;
  // The arguments themselves may be what is wrong, so they are looked at once more.
  bool json = std::any_of(argv, argv + argc, [](std::string_view argument) { return argument == "--json"; });
  return fail(argc > 0 ? argv[0] : "sluice", status, json);
}
