// Vectors of f16 and bf16 between memory and registers, where they are f32.
//
// The same bits come out on AVX2 and AVX-512: bf16 is made by integer arithmetic, for the instruction that does it takes
// subnormals for zeros, and f16 by the conversions of F16C, which both have.
#pragma once

#include "mlir/IR/Builders.h"

namespace sluice::cpu {

/// What memory holds (f16, or i16 for bf16), as f32.
mlir::Value widenHalf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value stored, mlir::Type half);

/// f32 rounded to the nearest even value of `half`, as f32. A NaN stays one.
mlir::Value roundToHalf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value vector, mlir::Type half);

/// What memory holds of f32 that have values of `half`.
mlir::Value narrowToHalf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value vector, mlir::Type half);

} // namespace sluice::cpu
