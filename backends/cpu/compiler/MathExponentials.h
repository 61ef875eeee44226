// Exponentials and logarithms of f32, for all floats: subnormal arguments and results are kept.
#pragma once

#include "backends/cpu/compiler/MathFormula.h"

namespace sluice::cpu {

/// e^x to 1 ulp; e^x - 1, log x and log(1 + x) to 1.5. Infinities, NaN and signed zeros are as in C.
mlir::Value exp(const Formula &f, mlir::Value x);
mlir::Value expm1(const Formula &f, mlir::Value x);
mlir::Value log(const Formula &f, mlir::Value x);
mlir::Value log1p(const Formula &f, mlir::Value x);

} // namespace sluice::cpu
