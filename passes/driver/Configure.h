// Checks the options of a compilation against a module, and records them in it.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "passes/assign/PlacementRequest.h"
#include "sluice/backend/compile.h"
#include "sluice/compile_options.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <string>
#include <vector>

namespace sluice::passes {

/// The phases of a compilation.
struct PhaseRange {
  std::string from; ///< of the input; empty: as declared in it
  std::string to;   ///< the last; empty: all
};

/// The available backends.
struct BackendFinder {
  const sluice_backend_compile *host;
  std::function<llvm::Expected<const sluice_backend_compile *>(llvm::StringRef name)> find;
};

/// The decisions that precede the first phase.
struct Configured {
  std::string phase; ///< of the module
  PlacementRequest placement;
  int64_t replicas = 1;
  std::vector<const sluice_backend_compile *> backends; ///< of the module's devices
};

/// The phases at which compilation can stop, in order; `executable`, the linked artifact, is the last.
std::vector<llvm::StringRef> phasesToStopAt();

/// Checks the options against each other and against the module. Records those that are kept in the model, except the
/// capacity and the precision (`record-options`). The errors are ObstacleErrors, or those of `backends`.
llvm::Expected<Configured> configure(mlir::ModuleOp module, const CompileOptions &options, const PhaseRange &phases,
                                     const BackendFinder &backends);

} // namespace sluice::passes
