// Layouts proposed by backends, as lists of physical dimensions.
#pragma once

#include "mlir/IR/AffineMap.h"
#include "sluice/backend/compile.h"
#include <string>

namespace sluice::passes {

/// The reason why these dimensions are no layout of a value of this rank; empty if they are one.
std::string whyNoLayout(llvm::ArrayRef<sluice_layout_dim> dims, int64_t rank);

/// The map of a layout; the identity if it has no dimensions.
mlir::AffineMap layoutOf(llvm::ArrayRef<sluice_layout_dim> dims, int64_t rank, mlir::MLIRContext *context);

} // namespace sluice::passes
