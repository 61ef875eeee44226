// Converts vectors of f16 and bf16 between memory and registers, where they are f32.
//
// Results are bitwise equal on AVX2 and AVX-512. bf16 uses integer arithmetic, because the bf16 instruction flushes
// subnormals to zero. f16 uses the F16C conversions, which both instruction sets have.
#pragma once

#include "mlir/IR/Builders.h"

namespace sluice::cpu {

/// The type of an element of type `half` in memory: f16, or i16 for bf16.
mlir::Type typeInMemory(mlir::Type half);

/// Converts a vector from its memory format to f32.
mlir::Value widenHalf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value stored, mlir::Type half);

/// f32 rounded to the nearest even value of `half`, as f32. A NaN stays one.
mlir::Value roundToHalf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value vector, mlir::Type half);

/// Converts f32 values that are representable in `half` to their memory format.
mlir::Value narrowToHalf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value vector, mlir::Type half);

} // namespace sluice::cpu
