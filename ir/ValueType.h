// What types values and states may have: the one place that says so of types that come from text.
#pragma once

#include "mlir/IR/Operation.h"

namespace sluice::ir {

/// Verifies that the dialect has values of this type: a ranked tensor of one of its element types, of sizes that it can
/// count, whose encoding is none or one that gives each element a place. Reports at `op`, which has the value.
mlir::LogicalResult verifyValueType(mlir::Operation *op, mlir::Type type);

} // namespace sluice::ir
