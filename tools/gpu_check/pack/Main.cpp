// gpu_check_pack FOLDER SETTINGS NAME=GRAPH[:PRECISION]... ops=OP,OP...: packs the kernels of models, of single ops (all where
// none is named), and those of the runner's own checks. SETTINGS are those of the CUDA backend, such as arch=sm_90, or empty.
#include "tools/compiler/Diagnostics.h"
#include "tools/gpu_check/pack/ModelKernels.h"
#include "tools/gpu_check/pack/OpKernels.h"
#include "tools/gpu_check/pack/OwnKernels.h"
#include "llvm/Support/raw_ostream.h"

using namespace sluice;

static int report(llvm::Error error) {
  compiler::Failure failure = compiler::takeFailure(std::move(error));
  llvm::errs() << "gpu_check_pack: " << failure.text << '\n';
  return int(failure.code);
}

int main(int count, char **arguments) {
  if (count < 3) {
    llvm::errs() << "usage: gpu_check_pack FOLDER SETTINGS NAME=GRAPH[:PRECISION]...\n";
    return int(compiler::ExitCode::Usage);
  }
  std::string folder = arguments[1];
  passes::BackendSettings settings;
  if (*arguments[2])
    settings["cuda"] = arguments[2];
  if (llvm::Error error = gpu_check::packOwnKernels(folder, arguments[2]))
    return report(std::move(error));
  for (int i = 3; i < count; ++i) {
    auto [name, what] = llvm::StringRef(arguments[i]).split('=');
    auto [graph, precision] = what.split(':');
    auto kernels = name == "ops" ? gpu_check::packOps(what, folder, settings)
                                 : gpu_check::packModel(graph.str(), precision.str(), name.str(), folder, settings);
    if (!kernels)
      return report(kernels.takeError());
    llvm::outs() << name << ": " << *kernels << " kernels\n";
    llvm::outs().flush();
  }
  return 0;
}
