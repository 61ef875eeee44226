// State that the compilations of a process share.
#pragma once

#include "mlir/IR/MLIRContext.h"
#include "passes/kernel/KernelCache.h"
#include "passes/kernel/KernelFolder.h"
#include <optional>

namespace sluice::compiler {

/// Loaded backends are shared, too; they belong to the process, like all shared objects (Backends.h).
class CompilerContext {
public:
  /// The context of sluice::compile.
  static CompilerContext &ofProcess();

  /// For modules that are read from files. One thread at a time may use it.
  mlir::MLIRContext &mlir() { return context; }
  /// Lowered kernels; for any thread, and for modules of any MLIR context.
  passes::KernelCache &kernels() { return cache; }
  /// Lowered kernels of all processes of the user; null if the user has no folder for them. For any thread.
  passes::KernelFolder *kernelFolder();

private:
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED}; // failure to create a thread would end the process
  passes::KernelCache cache;
  std::optional<passes::KernelFolder> folder;
  std::once_flag folderIsFound;
};

} // namespace sluice::compiler
