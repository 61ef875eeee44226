// Packs the kernels of models and of single ops; without a list of packs, the kernels of the runner's checks.
#include "passes/driver/OptionTable.h"
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/gpu_check/pack/ModelKernels.h"
#include "tools/gpu_check/pack/OpKernels.h"
#include "tools/gpu_check/pack/OwnKernels.h"
#include "llvm/Support/raw_ostream.h"
#include <malloc.h>

using namespace sluice;

static int report(llvm::Error error) {
  compiler::Failure failure = compiler::takeFailure(std::move(error));
  llvm::errs() << help::errorText("gpu_check_pack", failure.text) << '\n';
  return int(failure.code);
}

/// The options of one pack, with the common settings and its own. `precision` is empty for the model's own.
static CompileOptions optionsOf(llvm::StringRef all, llvm::StringRef more, llvm::StringRef precision) {
  CompileOptions options;
  std::string both = (all + (all.empty() || more.empty() ? "" : ",") + more).str();
  if (!both.empty())
    options.backends["cuda"] = both;
  if (precision == "tf32")
    options.math = "tf32";
  else if (!precision.empty())
    passes::setOption(options, *passes::findOption("precision"), precision);
  return options;
}

int main(int count, char **arguments) {
  std::string folder, allSettings;
  std::vector<std::string> packs;
  CLI::App app("Packs the kernels of models and of single ops, for gpu_check_run.", "gpu_check_pack");
  help::setHelp(app);
  app.add_option("folder", folder, "Folder for the packs")->required()->type_name("FOLDER");
  app.add_option("settings", allSettings, "Settings of the CUDA backend, e.g. arch=sm_90; may be empty")
      ->required()
      ->type_name("SETTINGS");
  app.add_option(
         "packs", packs,
         "Packs: NAME=GRAPH[:PRECISION][@MORE] of a model, or opsN=OP,OP...[@MORE] of single ops (all ops if none is "
         "named); PRECISION is bf16, f16 or tf32; MORE are settings of this pack, e.g. library=all (default: the "
         "kernels of the runner's checks)")
      ->type_name("PACK...");
  if (std::optional<int> code = help::parse(app, count, arguments))
    return *code;
  // Interpreting makes and drops tensors of hundreds of megabytes, which the system would clear each time.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  if (packs.empty()) {
    llvm::Error error = gpu_check::packOwnKernels(folder, allSettings);
    return error ? report(std::move(error)) : 0;
  }
  for (llvm::StringRef pack : packs) {
    auto [name, given] = pack.split('=');
    auto [what, more] = given.split('@');
    auto [graph, precision] = what.split(':');
    CompileOptions options = optionsOf(allSettings, more, precision);
    auto kernels = name.starts_with("ops") ? gpu_check::packOps(what, name.str(), folder, options)
                                           : gpu_check::packModel(graph.str(), name.str(), folder, options);
    if (!kernels)
      return report(kernels.takeError());
    llvm::outs() << name << ": " << *kernels << " kernels\n";
    llvm::outs().flush();
  }
  return 0;
}
