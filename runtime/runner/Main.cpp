// The start of every executable: parse, run the verb, turn errors into exit codes.
#include "runtime/Status.h"
#include "runtime/Text.h"
#include "runtime/runner/Verbs.h"

#include <csignal>

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

int main(int argc, char **argv) {
  signal(SIGXFSZ, SIG_IGN); // a file size limit is then an error of write(), with its message
  int code = 0;
  Status status = guarded([&] {
    if (std::optional<Options> options = parseCommandLine(argc, argv))
      code = runVerb(*options);
  });
  if (status.ok())
    return code;
  std::string program = argc > 0 ? argv[0] : "sluice";
  talk(concat(program.substr(program.rfind('/') + 1),
              ": error: ", status.message.empty() ? "out of memory" : status.message));
  return static_cast<int>(status.code);
}
