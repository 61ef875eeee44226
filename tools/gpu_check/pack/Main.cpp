// gpu_check_pack FOLDER SETTINGS NAME=GRAPH[:PRECISION][@MORE]... ops=OP,OP...[@MORE]: packs the kernels of models, and of
// single ops (all where none is named) as packs whose names begin with `ops`; where there are none to pack, those of the
// runner's own checks. SETTINGS are those of the CUDA backend, such as arch=sm_90, or empty; MORE are those of one pack alone,
// such as tf32=on.
#include "tools/compiler/Diagnostics.h"
#include "tools/gpu_check/pack/ModelKernels.h"
#include "tools/gpu_check/pack/OpKernels.h"
#include "tools/gpu_check/pack/OwnKernels.h"
#include "llvm/Support/raw_ostream.h"
#include <malloc.h>

using namespace sluice;

static int report(llvm::Error error) {
  compiler::Failure failure = compiler::takeFailure(std::move(error));
  llvm::errs() << "gpu_check_pack: " << failure.text << '\n';
  return int(failure.code);
}

/// Those of all packs, and those of one.
static passes::BackendSettings settingsOf(llvm::StringRef all, llvm::StringRef more) {
  std::string both = (all + (all.empty() || more.empty() ? "" : ",") + more).str();
  return both.empty() ? passes::BackendSettings() : passes::BackendSettings{{"cuda", both}};
}

int main(int count, char **arguments) {
  if (count < 3) {
    llvm::errs() << "usage: gpu_check_pack FOLDER SETTINGS [NAME=GRAPH[:PRECISION][@MORE]...]\n";
    return int(compiler::ExitCode::Usage);
  }
  // Interpreting makes and drops tensors of hundreds of megabytes, which the system would clear each time.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  std::string folder = arguments[1];
  if (count == 3) {
    llvm::Error error = gpu_check::packOwnKernels(folder, arguments[2]);
    return error ? report(std::move(error)) : 0;
  }
  for (int i = 3; i < count; ++i) {
    auto [name, given] = llvm::StringRef(arguments[i]).split('=');
    auto [what, more] = given.split('@');
    auto [graph, precision] = what.split(':');
    passes::BackendSettings settings = settingsOf(arguments[2], more);
    auto kernels = name.starts_with("ops")
                       ? gpu_check::packOps(what, name.str(), folder, settings)
                       : gpu_check::packModel(graph.str(), precision.str(), name.str(), folder, settings);
    if (!kernels)
      return report(kernels.takeError());
    llvm::outs() << name << ": " << *kernels << " kernels\n";
    llvm::outs().flush();
  }
  return 0;
}
