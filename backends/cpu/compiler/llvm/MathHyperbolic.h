// Inverse trigonometric functions, and hyperbolic functions other than tanh (MathFunctions.cpp), of f32, defined for all
// floats.
#pragma once

#include "backends/cpu/compiler/llvm/MathFormula.h"

namespace sluice::cpu {

/// Maximum errors: 1 ulp. Infinities, NaN, signed zeros and subnormal numbers are as in C.
mlir::Value asin(const Formula &f, mlir::Value x);
mlir::Value acos(const Formula &f, mlir::Value x);
mlir::Value atan(const Formula &f, mlir::Value x);
mlir::Value sinh(const Formula &f, mlir::Value x);
mlir::Value cosh(const Formula &f, mlir::Value x);
mlir::Value asinh(const Formula &f, mlir::Value x);
mlir::Value acosh(const Formula &f, mlir::Value x);
mlir::Value atanh(const Formula &f, mlir::Value x);

} // namespace sluice::cpu
