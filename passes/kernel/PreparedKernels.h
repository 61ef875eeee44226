// Cached descriptions of kernels, so that each backend prepares a kernel once.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringMap.h"

namespace sluice::passes {

/// For one model and target, in one context.
struct PreparedKernels {
  llvm::StringMap<mlir::DictionaryAttr> functions; ///< attributes, by the preparing backend and the body
};

} // namespace sluice::passes
