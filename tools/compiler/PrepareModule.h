// The options of a compilation: their checks against the module, and their record in it.
#pragma once

#include "tools/compiler/Compiler.h"

namespace sluice::compiler {

/// The decisions that precede the first phase.
struct PreparedModule {
  std::string phase;
  std::optional<ir::Precision> precision;
  PlacementRequest placement;
  int64_t replicas = 1;
  std::vector<const sluice_backend_compile *> backends;
};

/// Checks the options against the module, and records in the module those that it contains.
llvm::Expected<PreparedModule> prepareModule(mlir::ModuleOp module, const CompileOptions &options);

} // namespace sluice::compiler
