// sluice show
#include "runtime/help/HelpFormatter.h"
#include "tools/sluice/Commands.h"
#include "tools/sluice/Flags.h"
#include "llvm/Support/raw_ostream.h"

using namespace sluice::compiler;

namespace sluice::tool {

static const char kShowExamples[] = R"(Examples:
  sluice show lenet.mlir                     the graph as written
  sluice show lenet.mlir --phase train       with gradients and updates
  sluice show lenet.mlir --phase fused       the kernels
  sluice show lenet.mlir --phase planned     memory of every value
  sluice show lenet.mlir --phase copied --dot | dot -Tsvg -o lenet.svg)";

Command addShow(CLI::App &app) {
  CLI::App *command = app.add_subcommand("show", "Print the IR of a model after a phase");
  command->footer(kShowExamples);
  auto model = std::make_shared<std::string>();
  auto options = std::make_shared<CompileOptions>();
  options->emit = Emit::Mlir;
  options->compileTo = "model";
  options->output = "-";
  options->printLocations = false;
  addModel(*command, *model);
  help::beginGroup(*command, "Output");
  command->add_option("--phase", options->compileTo, "Phase to print (default: model)")->type_name("PHASE");
  command->add_flag("--locations", options->printLocations, "Print the source location of every op");
  command->add_flag("--dot", [options](int64_t) { options->emit = Emit::Dot; }, "Print a Graphviz graph instead of IR");
  addCodeFlags(*command, *options);
  addReplicaFlags(*command, *options);
  addPlacementFlags(*command, options->placement);
  return {command, [=](const Talk &talk) -> llvm::Error {
            auto compiled = compileFile(*model, *options);
            if (compiled && !talk.quiet)
              llvm::errs() << compiled->warnings;
            return compiled.takeError();
          }};
}

} // namespace sluice::tool
