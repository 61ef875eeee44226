// sluice show
#include "runtime/help/HelpFormatter.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/sluice/Commands.h"
#include "tools/sluice/Flags.h"
#include "tools/sluice/KernelPage.h"
#include "llvm/Support/raw_ostream.h"

using namespace sluice::compiler;

namespace sluice::tool {

static const char kShowExamples[] = R"(Examples:
  sluice show lenet.mlir                     the graph as written
  sluice show lenet.mlir --phase train       with gradients and updates
  sluice show lenet.mlir --phase fused       the ops of every kernel
  sluice show lenet.mlir --phase planned     memory of every value
  sluice show lenet.mlir --phase kernels     facts and code of every kernel
  sluice show lenet.mlir --phase copied --dot | dot -Tsvg -o lenet.svg)";

static llvm::Error show(const std::string &model, const std::string &kernel, const CompileOptions &options,
                        const CompileTask &task, const Talk &talk) {
  bool showsKernels = task.compileTo == kKernelPhase;
  if (!kernel.empty() && !showsKernels)
    return makeError(ExitCode::Usage, "--kernel selects a kernel of --phase kernels; add --phase kernels");
  if (showsKernels && task.emit == Emit::Dot)
    return makeError(ExitCode::Usage, "--dot draws the IR of a phase, not the texts of kernels; leave out --dot");
  std::string warnings;
  if (showsKernels) {
    if (llvm::Error error = printKernels(llvm::outs(), model, options, kernel, warnings))
      return error;
  } else {
    auto compiled = compileFile(model, options, task);
    if (!compiled)
      return compiled.takeError();
    warnings = compiled->warnings;
  }
  if (!talk.quiet)
    llvm::errs() << warnings;
  return llvm::Error::success();
}

Command addShow(CLI::App &app) {
  CLI::App *command = app.add_subcommand("show", "Print the IR of a model after a phase");
  command->footer(kShowExamples);
  auto model = std::make_shared<std::string>(), kernel = std::make_shared<std::string>();
  auto options = std::make_shared<CompileOptions>();
  auto task = std::make_shared<CompileTask>();
  task->emit = Emit::Mlir;
  task->compileTo = "model";
  task->output = "-";
  task->printLocations = false;
  addModel(*command, *model);
  help::beginGroup(*command, "Output");
  command->add_option("--phase", task->compileTo, "Phase to print, or kernels (default: model)")->type_name("PHASE");
  command->add_option("--kernel", *kernel, "Print only this kernel, with --phase kernels (default: all)")
      ->type_name("NAME");
  command->add_flag("--locations", task->printLocations, "Print the source location of every op");
  command->add_flag("--dot", [task](int64_t) { task->emit = Emit::Dot; }, "Print a Graphviz graph instead of IR");
  addOptions(*command, *options, {"Devices", "Code", "Replicas", "Placement"});
  return {command, [=](const Talk &talk) { return show(*model, *kernel, *options, *task, talk); }};
}

} // namespace sluice::tool
