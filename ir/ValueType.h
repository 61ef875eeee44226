// The types that values and states may have. Types from untrusted text are checked only here.
#pragma once

#include "mlir/IR/Operation.h"

namespace sluice::ir {

/// Verifies that the type is one of the dialect: a ranked tensor of one of its element types, with countable sizes,
/// without encoding or with one that gives each element a position. Reports at `op`, which has the value.
mlir::LogicalResult verifyValueType(mlir::Operation *op, mlir::Type type);

} // namespace sluice::ir
