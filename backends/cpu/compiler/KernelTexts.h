// The texts of the CPU's kernels, for reading: the vector-level MLIR, the LLVM IR, the assembly, and facts.
#pragma once

#include "backends/cpu/compiler/KernelLowering.h"
#include "backends/cpu/compiler/llvm/Codegen.h"

namespace sluice::cpu {

class KernelTexts {
public:
  /// Texts are written to `folder`; empty: none.
  explicit KernelTexts(std::string folder = "") : folder(std::move(folder)) {}

  void add(llvm::StringRef name, const LoweredKernel &kernel);
  /// The kernels so far, for CodegenOptions; empty if no texts are wanted.
  llvm::MutableArrayRef<KernelText> kernels() { return texts; }
  /// Writes the texts that the code generator has made. The error has the file and the reason.
  llvm::Error write(const Target &target) const;

private:
  struct Named {
    std::string name, tiles; // tiles: the facts about them
  };
  std::string folder;
  std::vector<Named> names;
  std::vector<KernelText> texts;
};

} // namespace sluice::cpu
