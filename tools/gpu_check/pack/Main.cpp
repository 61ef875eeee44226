// gpu_check_pack FOLDER SETTINGS NAME=GRAPH...: packs the kernels of models, and the kernels of the runner's own checks.
// SETTINGS are those of the CUDA backend, such as arch=sm_90, or empty.
#include "tools/compiler/Diagnostics.h"
#include "tools/gpu_check/pack/ModelKernels.h"
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
    llvm::errs() << "usage: gpu_check_pack FOLDER SETTINGS NAME=GRAPH...\n";
    return int(compiler::ExitCode::Usage);
  }
  std::string folder = arguments[1];
  gpu_check::PackOptions options;
  if (*arguments[2])
    options.settings["cuda"] = arguments[2];
  if (llvm::Error error = gpu_check::packOwnKernels(folder, arguments[2]))
    return report(std::move(error));
  for (int i = 3; i < count; ++i) {
    auto [name, graph] = llvm::StringRef(arguments[i]).split('=');
    options.name = name.str();
    auto kernels = gpu_check::packModel(graph.str(), folder, options);
    if (!kernels)
      return report(kernels.takeError());
    llvm::outs() << name << ": " << *kernels << " kernels\n";
    llvm::outs().flush();
  }
  return 0;
}
