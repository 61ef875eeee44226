// The prepared kernels of a session, each with a module of its stage functions.
//
// The bodies of some functions are only generated when the kernel is lowered: placement prepares many kernels that
// never run.
#pragma once

#include "backends/cpu/compiler/KernelLowering.h"

#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sluice::cpu {

class SessionKernels {
public:
  bool empty() const { return kernels.empty(); }
  mlir::MLIRContext *context() { return kernels.front().module->getContext(); }
  /// The numbers of all kernels.
  llvm::SmallVector<size_t> all() const;
  /// The number of the kernel that was added with a symbol.
  std::optional<size_t> find(llvm::StringRef symbol) const;

  /// The names of the functions begin with `symbol`; if it is empty, with a name that no other function's begins with.
  mlir::FailureOr<LoweredKernel> add(ir::KernelOp kernel, llvm::StringRef symbol, const Target &target,
                                     int64_t capacity);
  /// The module of a kernel. Generates the missing bodies.
  mlir::FailureOr<mlir::ModuleOp> generate(size_t number, const Target &target, int64_t capacity);

private:
  struct Kernel {
    std::string name; // of its functions: prefix
    mlir::OwningOpRef<mlir::ModuleOp> module;
    mlir::OwningOpRef<mlir::ModuleOp> postponed; // a copy of the kernel, until the bodies are generated; or null
  };

  std::string uniqueName(llvm::StringRef wanted) const;

  std::vector<Kernel> kernels;
  llvm::StringMap<size_t> bySymbol;
  std::set<std::string, std::less<>> functions;
};

} // namespace sluice::cpu
