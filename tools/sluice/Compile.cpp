// sluice compile
#include "runtime/help/HelpFormatter.h"
#include "tools/sluice/Commands.h"
#include "tools/sluice/Flags.h"
#include "tools/sluice/ImportFlags.h"
#include "tools/sluice/Summary.h"
#include "tools/sluice/Tracing.h"
#include "llvm/Support/raw_ostream.h"

using namespace sluice::compiler;

namespace sluice::tool {

static const char kCompileExamples[] = R"(Examples:
  sluice compile lenet.mlir -o lenet                    an executable: try ./lenet --help
  sluice compile lenet.mlir --emit=so                   a library for sluice/runtime/api.h
  sluice compile lenet.mlir --dump-ir dump              one numbered file per phase
  sluice compile dump/07-fused.mlir --compile-from=fused -o lenet)";

static llvm::Error compile(const std::string &file, const onnx::ImportOptions &import, const CompileOptions &options,
                           const CompileTask &task, const Tracing &tracing, const Talk &talk) {
  if (talk.verbose)
    llvm::errs() << "compiling " << file << '\n';
  ModelFile imported;
  auto model = imported.open(file, import);
  if (!model)
    return model.takeError();
  auto compiled = compileFile(*model, options, task);
  if (!compiled)
    return compiled.takeError();
  if (!talk.quiet)
    llvm::errs() << compiled->warnings;
  if (tracing.timing && !talk.json)
    printTiming(llvm::errs(), *compiled);
  else if (talk.verbose)
    printPhases(llvm::errs(), *compiled);
  if (talk.verbose && !compiled->cacheProblem.empty())
    llvm::errs() << "note: " << compiled->cacheProblem << '\n';
  if (compiled->objects.empty() || compiled->output == "-")
    return llvm::Error::success();
  if (talk.json)
    printSummaryAsJson(llvm::outs(), *compiled);
  else if (!talk.quiet)
    printSummary(llvm::outs(), *compiled);
  return llvm::Error::success();
}

Command addCompile(CLI::App &app) {
  CLI::App *command = app.add_subcommand("compile", "Compile a model to an executable");
  command->footer(kCompileExamples);
  auto model = std::make_shared<std::string>();
  auto options = std::make_shared<CompileOptions>();
  auto task = std::make_shared<CompileTask>();
  auto import = std::make_shared<onnx::ImportOptions>();
  addModel(*command, *model);
  help::beginGroup(*command, "Output");
  command
      ->add_option("-o,--output", task->output,
                   "File to write; - writes IR to standard output (default: MODEL with the ending of its kind)")
      ->type_name("FILE");
  addEmit(*command, task->emit);
  addOptions(*command, *options, {"Phases and debugging"});
  command->add_option("--compile-to", task->compileTo, "Stop after this phase and write its IR")->type_name("PHASE");
  command
      ->add_option("--compile-from", task->compileFrom, "Phase of which the input is a dump (default: as in the input)")
      ->type_name("PHASE");
  auto tracing = addTracingFlags(*command, *task);
  addDeviceLists(*command, *options, *task);
  addOptions(*command, *options, {"Devices", "Code", "Replicas", "Placement"}, {"--devices"});
  hideImportFlags(*command, *import);
  return {command, [=](const Talk &talk) { return compile(*model, *import, *options, *task, *tracing, talk); }};
}

} // namespace sluice::tool
