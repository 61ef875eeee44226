// The texts of the CPU's kernels, for reading: the vector-level MLIR, the LLVM IR, the assembly, and facts.
#pragma once

#include "backends/cpu/compiler/KernelLowering.h"
#include "backends/cpu/compiler/llvm/Codegen.h"

namespace sluice::cpu {

class KernelTexts {
public:
  /// Texts are written to `folder`; empty: none.
  explicit KernelTexts(std::string folder = "") : folder(std::move(folder)) {}

  bool areWritten() const { return !folder.empty(); }
  void add(llvm::StringRef name, const LoweredKernel &kernel);
  /// Writes the texts of the kernels with these numbers, in the order in which they were added. Each kernel is the module
  /// of its functions. The error of a file has its name.
  llvm::Error write(llvm::ArrayRef<size_t> numbers, llvm::ArrayRef<mlir::ModuleOp> kernels, const Target &target);

private:
  struct Named {
    std::string name, tiles; // tiles: the facts about them
  };
  std::string folder;
  std::vector<Named> names;
};

} // namespace sluice::cpu
