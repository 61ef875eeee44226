// Elements of constants as read-only globals of the module.
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"

namespace sluice::cpu {

/// The address of the elements in row-major order, in their memory format (i1 as bytes 0 and 1). Equal data is stored
/// once.
mlir::Value addressOfConstant(mlir::OpBuilder &b, mlir::Location loc, mlir::ModuleOp module,
                              mlir::DenseElementsAttr elements);

} // namespace sluice::cpu
