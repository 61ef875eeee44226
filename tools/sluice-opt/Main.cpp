// `sluice-opt`: runs passes of Sluice, and those of MLIR that suit any dialect, on a file, for tests and for looking at
// one pass alone.
#include "ir/Dialect.h"
#include "ir/text/ParseGuard.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "runtime/files/InputFile.h"
#include "runtime/files/Process.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Files.h"
#include "tools/sluice-opt/SluicePasses.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace sluice::compiler;

/// Reads the file, runs the passes, and writes what they leave; a failure of the passes has been printed.
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

int main(int argc, char **argv) {
  sluice::files::prepareProcess();
  llvm::InitLLVM guard(argc, argv);
  mlir::DialectRegistry registry;
  registry.insert<sluice::ir::SluiceDialect>();
  mlir::registerTransformsPasses();
  sluice::tool::registerSluicePasses();
  auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, "Sluice's passes\n", registry);
  if (mlir::MlirOptMainConfig::createFromCLOptions().shouldShowDialects())
    return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
  llvm::Error error = run(input, output, registry);
  if (!error)
    return 0;
  Failure failure = takeFailure(std::move(error));
  if (!failure.text.empty())
    llvm::errs() << "sluice-opt: " << failure.text << '\n';
  return int(failure.code);
}
