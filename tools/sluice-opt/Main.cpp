// `sluice-opt`: runs passes of Sluice, and the passes of MLIR that suit any dialect, on a file. For tests, and for
// debugging a single pass.
#include "frontend/onnx/import/Operators.h"
#include "ir/Dialect.h"
#include "ir/text/ParseGuard.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/driver/OptionTable.h"
#include "passes/driver/PassTable.h"
#include "runtime/files/InputFile.h"
#include "runtime/files/Process.h"
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Files.h"
#include "tools/sluice-opt/SluicePasses.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace sluice::compiler;

/// Reads the file, runs the passes, and writes the result. The passes have printed their failures.
static llvm::Error run(const std::string &input, const std::string &output, mlir::DialectRegistry &registry) {
  std::string text, result;
  sluice::files::Failure failure = sluice::files::readFile(
      input == "-" ? "/dev/stdin" : input, sluice::files::Source::regularOrPipe, sluice::ir::kMaxModelBytes, text);
  if (!failure.empty())
    return makeError(ExitCode::Invalid, input + ": " + failure);
  llvm::raw_string_ostream stream(result);
  if (failed(mlir::MlirOptMain(stream, llvm::MemoryBuffer::getMemBufferCopy(text, input), registry,
                               mlir::MlirOptMainConfig::createFromCLOptions())))
    return makeError(ExitCode::Mismatch, "");
  return output == "-" ? writeStandardOutput(result) : writeWhole(result, output);
}

/// The options of Sluice; those of MLIR fill hundreds of lines.
static std::string helpText() {
  CLI::App app("Runs passes of Sluice and MLIR on a file of IR, in the order of the command line.", "sluice-opt");
  sluice::help::setHelp(app);
  std::string input, output;
  app.add_option("input", input, "File of IR; - reads standard input (default: -)")->type_name("FILE.mlir");
  sluice::help::beginGroup(app, "Passes, in the order of the pipeline");
  for (const sluice::tool::PassSummary &pass : sluice::tool::sluicePasses())
    app.add_flag("--" + pass.argument, pass.description);
  sluice::help::beginGroup(app, sluice::help::kCommon);
  app.add_option("-o", output, "File to write; - writes standard output (default: -)")->type_name("FILE");
  bool phases = false, options = false, operators = false, hidden = false;
  app.add_flag("--phases", phases, "Print tables of the phases, passes and invariants, as Markdown");
  app.add_flag("--options", options, "Print a table of the options of a compilation, as Markdown");
  app.add_flag("--onnx-operators", operators, "Print the operators that `sluice import` supports, as Markdown");
  app.add_flag("--help-hidden", hidden, "Print every pass and option of MLIR and LLVM");
  app.footer("Example:\n  sluice-opt --sluice-build-entry-points --sluice-simplify lenet.mlir");
  return app.help();
}

/// The text that an argument prints instead of running passes.
static std::optional<std::string> textFor(llvm::StringRef argument) {
  if (argument == "--help" || argument == "-help" || argument == "-h")
    return helpText();
  if (argument == "--phases")
    return sluice::passes::describePhases();
  if (argument == "--options")
    return sluice::passes::describeOptions();
  if (argument == "--onnx-operators")
    return sluice::onnx::describeOperators();
  return std::nullopt;
}

int main(int argc, char **argv) {
  sluice::files::prepareProcess();
  llvm::InitLLVM guard(argc, argv);
  mlir::DialectRegistry registry;
  registry.insert<sluice::ir::SluiceDialect>();
  mlir::registerTransformsPasses();
  sluice::tool::registerSluicePasses();
  for (llvm::StringRef argument : llvm::ArrayRef(argv + 1, argc - 1)) {
    if (std::optional<std::string> text = textFor(argument)) {
      llvm::outs() << *text;
      return 0;
    }
  }
  auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, "Sluice's passes\n", registry);
  if (mlir::MlirOptMainConfig::createFromCLOptions().shouldShowDialects())
    return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
  llvm::Error error = run(input, output, registry);
  if (!error)
    return 0;
  Failure failure = takeFailure(std::move(error));
  if (!failure.text.empty())
    llvm::errs() << sluice::help::errorText("sluice-opt", failure.text) << '\n';
  return int(failure.code);
}
