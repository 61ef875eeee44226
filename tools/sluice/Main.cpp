// `sluice`: compiles models, and inspects and verifies them.
#include "runtime/files/Process.h"
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Files.h"
#include "tools/sluice/CommandLine.h"
#include "tools/sluice/Reproducer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <new>
#include <sstream>

using namespace sluice::tool;
using sluice::compiler::ExitCode;
using sluice::compiler::Failure;

static const char kToolExamples[] = R"(Examples:
  sluice compile lenet.mlir -o lenet         an executable that trains and predicts
  sluice import resnet18.onnx -o resnet18.mlir     make a model of an ONNX file
  sluice place lenet.mlir --devices cpu,sim:0      choose the device of each op, with the reasons
  sluice scale lenet.mlir --cluster h100x8x128.json      predict training speed on a cluster
  sluice show lenet.mlir --phase fused       the kernels
  sluice verify lenet.mlir                   compare the kernels with the reference interpreter)";

/// `sluice` with all its commands.
static std::vector<Command> addCommands(CLI::App &app) {
  app.name("sluice");
  sluice::help::setHelp(app);
  app.set_version_flag("--version", std::string("sluice ") + SLUICE_VERSION, "Print the version and exit");
  app.require_subcommand(1);
  app.footer(kToolExamples);
  return {addCompile(app), addImport(app), addVerify(app),  addPlace(app),
          addScale(app),   addShow(app),   addDevices(app), addConformance(app)};
}

/// Prints the error on stderr, and with --json as an object on stdout. A failed comparison is a result, which its
/// command has printed.
static int fail(const Failure &failure, const Talk &talk) {
  if (talk.json && failure.code != ExitCode::Mismatch)
    llvm::outs() << llvm::json::Value(
                        llvm::json::Object{{"error", llvm::json::fixUTF8(failure.text)}, {"code", int(failure.code)}})
                 << '\n';
  llvm::errs() << sluice::help::errorText("sluice", failure.text) << '\n';
  return int(failure.code);
}

/// Returns `code`, or the code of a failed write: results are buffered until here.
static int finish(int code, const Talk &talk) {
  llvm::Error error = sluice::compiler::writeStandardOutput();
  if (error && code == int(ExitCode::Fine))
    code = fail(sluice::compiler::takeFailure(std::move(error)), talk);
  llvm::consumeError(std::move(error));
  // A later failure cannot be reported; LLVM's streams would end the process with their message and exit code.
  llvm::outs().flush();
  llvm::outs().clear_error();
  llvm::errs().clear_error();
  return code;
}

static void outOfMemory() { sluice::files::endExhausted("out of memory"); }

/// Reports LLVM's fatal errors. A thread that cannot be started is exhausted memory, not an internal error.
static void endByFatalError(void *, const char *reason, bool) {
  if (llvm::StringRef(reason).starts_with("pthread_create"))
    sluice::files::endExhausted("out of memory: a thread cannot be started");
  llvm::errs() << "LLVM ERROR: " << reason << '\n';
}

/// Exhausted resources end the tool, anywhere in LLVM.
static void installHandlers() {
  std::set_new_handler(outOfMemory);
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { outOfMemory(); });
  llvm::install_fatal_error_handler(endByFatalError);
}

static int runCommand(const std::vector<Command> &commands, const Talk &talk,
                      const std::vector<std::string> &arguments) {
  for (const Command &command : commands) {
    if (!command.app->parsed())
      continue;
    llvm::Error error = runGuarded([&] { return command.run(talk); }, arguments);
    return error ? fail(sluice::compiler::takeFailure(std::move(error)), talk) : int(ExitCode::Fine);
  }
  return int(ExitCode::Usage);
}

/// Parses the arguments and runs the command.
static int run(int argc, char **argv, Talk &talk) {
  CLI::App app("Compiles deep-learning models to standalone programs, and shows and checks the result.", "sluice");
  std::vector<Command> commands = addCommands(app);
  for (const Command &command : commands)
    addTalk(*command.app, talk);

  std::vector<std::string> arguments(argv + 1, argv + argc);
  talk.json = llvm::is_contained(arguments, "--json"); // for errors in the arguments, when flags are not parsed
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) { // --help, --version
    std::ostringstream text;
    int code = app.exit(success, text, text);
    llvm::outs() << text.str();
    return code;
  } catch (const CLI::ParseError &error) {
    return fail({ExitCode::Usage, sluice::help::argumentError(app, error, arguments)}, talk);
  }
  return runCommand(commands, talk, arguments);
}

int main(int argc, char **argv) {
  sluice::files::prepareProcess();
  installHandlers();
  Talk talk;
  return finish(run(argc, argv, talk), talk);
}
