// What NVRTC gets and what it says, for people to read: the text of each unit, above each kernel the ops that it is made of and
// their source lines, and what every function needs of a multiprocessor.
#pragma once

#include "backends/cuda/compiler/nvrtc/Nvrtc.h"
#include "ir/Dialect.h"

namespace sluice::cuda {

/// A kernel's ops as comments of CUDA C++, each with its place in the source and, if `hasLines`, what stands in that line of
/// the file, where it is there.
std::string sourceComment(ir::KernelOp kernel, bool hasLines);

struct CompiledUnit {
  std::string architecture;
  std::vector<KernelResources> functions;
  std::string code; ///< empty where nobody keeps it
};

/// Whether the folder is there or could be made: better to learn it before kernels are compiled. Nothing is left.
llvm::Error checkDumpFolder(const std::string &folder);
/// Makes the folder if there is none, and writes `kernels-0.cu` and so on, `kernels-0.sm_90.cubin` or `.compute_80.ptx` of each
/// that has code, and `kernels.json`: for each function and architecture its registers, bytes spilled and bytes of shared
/// memory. A unit's number is its place in `units`, which `compiled` goes through for each architecture.
llvm::Error writeDump(const std::string &folder, llvm::ArrayRef<std::string> units,
                      llvm::ArrayRef<CompiledUnit> compiled);

} // namespace sluice::cuda
