// The texts of CUDA kernels, for reading: the CUDA C++, the PTX and, if there is a disassembler, the machine code, each
// cut out of the unit that was compiled; and facts.
#pragma once

#include "backends/cuda/compiler/kernels/GridKernel.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace sluice::cuda {

/// A unit, compiled for one architecture.
struct UnitText {
  std::string ptx, cubin; ///< empty: none
};

class KernelTexts {
public:
  /// Texts are written to `folder`; empty: none.
  explicit KernelTexts(std::string folder) : folder(std::move(folder)) {}

  bool areWanted() const { return !folder.empty(); }
  /// `facts` precede those about tiles and functions.
  void add(llvm::StringRef name, const GridKernel &kernel, std::string facts);
  /// Writes the texts of all kernels, of which each unit has this many.
  llvm::Error write(llvm::ArrayRef<UnitText> units, size_t kernelsOfUnit) const;

private:
  struct Kernel {
    std::string name, facts, source;
    llvm::StringSet<> functions;
  };
  std::string folder;
  std::vector<Kernel> kernels;
};

/// The PTX of these functions, and everything outside of functions; empty if there are none of them.
std::string ptxOf(llvm::StringRef unit, const llvm::StringSet<> &functions);
/// The parts of a listing of nvdisasm or cuobjdump that belong to these functions.
std::string sassOf(llvm::StringRef listing, const llvm::StringSet<> &functions);

} // namespace sluice::cuda
