// Recognizes the derivative of a tanh GELU in the ops of its gradient.
#pragma once

#include "mlir/IR/Operation.h"

namespace sluice::cuda {

/// The value a of d gelu(a) / da * dY, if the ops compute exactly that: each op contributes, and the last one has the
/// result. Else null.
mlir::Value inputOfGeluGradient(llvm::ArrayRef<mlir::Operation *> ops, mlir::Value dY);

} // namespace sluice::cuda
