// Elements of B stored in blocks of bytes with f16 scales (sluice/backend/blocks.h), as vectors of f32. The products of
// integers and scales are exact, so each value is that of sluice.dequantize_blocks.
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace sluice::cpu {

/// The type of an element in memory.
mlir::Type elementInBlocks(mlir::MLIRContext *context);

/// The scales at `address`, one for each lane of `type`.
mlir::Value loadScales(mlir::OpBuilder &b, mlir::Location loc, mlir::VectorType type, mlir::Value address);

/// The values of a vector of stored elements.
mlir::Value scaled(mlir::OpBuilder &b, mlir::Location loc, mlir::Value stored, mlir::Value scales);

} // namespace sluice::cpu
