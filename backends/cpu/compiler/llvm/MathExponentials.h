// Exponentials and logarithms of f32, defined for all floats. Subnormal arguments and results are not flushed to 0.
#pragma once

#include "backends/cpu/compiler/llvm/MathFormula.h"

namespace sluice::cpu {

/// Maximum errors: 1 ulp of exp; 1.5 ulp of expm1, log and log1p. Infinities, NaN and signed zeros are as in C.
mlir::Value exp(const Formula &f, mlir::Value x);
/// The same numbers as `exp` for x in [-87, 88], in fewer instructions. NaN stays NaN.
mlir::Value expOfNormal(const Formula &f, mlir::Value x);
mlir::Value expm1(const Formula &f, mlir::Value x);
mlir::Value log(const Formula &f, mlir::Value x);
mlir::Value log1p(const Formula &f, mlir::Value x);

} // namespace sluice::cpu
