// What backends have said of kernels, to be asked once.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringMap.h"

namespace sluice::passes {

/// Of one model and target, in one context.
struct PreparedKernels {
  llvm::StringMap<mlir::DictionaryAttr> functions; ///< their attributes, by the backend that made them and body
};

} // namespace sluice::passes
