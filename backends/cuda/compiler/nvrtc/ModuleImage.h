// A session's device code as one image: the descriptions of its kernels, and code for each architecture.
// runtime/ModuleImage.h defines and reads the format.
#pragma once

#include "backends/cuda/compiler/kernels/GridKernel.h"
#include "backends/cuda/compiler/library/LibraryProduct.h"
#include <string>
#include <utility>
#include <vector>

namespace sluice::cuda {

class ModuleImage {
public:
  void addKernel(llvm::StringRef name, int64_t buffers, llvm::ArrayRef<GridFunction> functions);
  /// Lets a library run the kernel that was added last.
  void addProduct(const LibraryProduct &product);
  void addCode(const std::string &architecture, std::string code);
  std::string write() const;

private:
  std::string kernels;
  std::vector<std::pair<std::string, std::string>> codes; // architecture, bytes
};

} // namespace sluice::cuda
