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
                        const Talk &talk) {
  bool showsKernels = options.compileTo == kKernelPhase;
  if (!kernel.empty() && !showsKernels)
    return makeError(ExitCode::Usage, "--kernel selects a kernel of --phase kernels; add --phase kernels");
  if (showsKernels && options.emit == Emit::Dot)
    return makeError(ExitCode::Usage, "--dot draws the IR of a phase, not the texts of kernels; leave out --dot");
  std::string warnings;
  if (showsKernels) {
    if (llvm::Error error = printKernels(llvm::outs(), model, options, kernel, warnings))
      return error;
  } else {
    auto compiled = compileFile(model, options);
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
  options->emit = Emit::Mlir;
  options->compileTo = "model";
  options->output = "-";
  options->printLocations = false;
  addModel(*command, *model);
  help::beginGroup(*command, "Output");
  command->add_option("--phase", options->compileTo, "Phase to print, or kernels (default: model)")->type_name("PHASE");
  command->add_option("--kernel", *kernel, "Print only this kernel, with --phase kernels (default: all)")
      ->type_name("NAME");
  command->add_flag("--locations", options->printLocations, "Print the source location of every op");
  command->add_flag("--dot", [options](int64_t) { options->emit = Emit::Dot; }, "Print a Graphviz graph instead of IR");
  addCodeFlags(*command, *options);
  addReplicaFlags(*command, *options);
  addPlacementFlags(*command, options->placement);
  return {command, [=](const Talk &talk) { return show(*model, *kernel, *options, talk); }};
}

} // namespace sluice::tool
