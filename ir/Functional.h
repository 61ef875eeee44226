// Pure functions: modules whose inputs and outputs are arrays of the caller.
#pragma once

#include "ir/Module.h"

namespace sluice::ir {

/// A unit attribute of `sluice.model`. States are inputs and outputs of the entry points, and every input and output is
/// passed by its address, on the host and on accelerators: no other value shares its memory, and no op writes an input.
inline constexpr llvm::StringLiteral kFunctionalAttr = "sluice.functional";

inline bool isFunctional(mlir::ModuleOp module) {
  ModelOp model = findModel(module);
  return model && model->hasAttr(kFunctionalAttr);
}

} // namespace sluice::ir
