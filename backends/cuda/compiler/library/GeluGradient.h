// The derivative of a GELU by tanh, recognised in the ops that the op's gradient is made of.
#pragma once

#include "mlir/IR/Operation.h"

namespace sluice::cuda {

/// The value a of d gelu(a) / da * dY, if that is what the ops compute, each for it and the last one as its result; else null.
mlir::Value inputOfGeluGradient(llvm::ArrayRef<mlir::Operation *> ops, mlir::Value dY);

} // namespace sluice::cuda
