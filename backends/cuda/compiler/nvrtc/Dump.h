// Dumps the input and output of NVRTC for reading: the source of each unit, the ops of each kernel with their source
// lines above the kernel, and the resources that every function uses.
#pragma once

#include "backends/cuda/compiler/nvrtc/Nvrtc.h"
#include "ir/Dialect.h"

namespace sluice::cuda {

/// A kernel's ops as comments of CUDA C++, each with its source location and, if `hasLines`, the text of that line if
/// the file exists.
std::string sourceComment(ir::KernelOp kernel, bool hasLines);

struct CompiledUnit {
  std::string architecture;
  std::vector<KernelResources> functions;
  std::string code; ///< empty if not dumped
};

/// Checks that the folder exists or can be created, to report errors before kernels are compiled. Leaves no files.
llvm::Error checkDumpFolder(const std::string &folder);
/// Creates the folder if required, and writes `kernels-0.cu` and so on, `kernels-0.sm_90.cubin` or `.compute_80.ptx` of
/// each compiled unit, and `kernels.json`. The latter has, for each function and architecture, its registers, bytes
/// spilled and bytes of shared memory. A unit's number is its index in `units`; `compiled` has all units for each
/// architecture in turn.
llvm::Error writeDump(const std::string &folder, llvm::ArrayRef<std::string> units,
                      llvm::ArrayRef<CompiledUnit> compiled);

} // namespace sluice::cuda
