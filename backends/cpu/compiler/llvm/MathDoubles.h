// Logarithms and powers of f64 vectors, for functions of f32 that are computed in double precision.
#pragma once

#include "backends/cpu/compiler/llvm/MathFormula.h"

namespace sluice::cpu {

/// log2 of a positive, finite, normal double, with a relative error of 2^-44.
mlir::Value log2(const Formula &f, mlir::Value x);
/// 2^x for x in [-1000, 1000], with a relative error of 2^-32. NaN stays NaN.
mlir::Value exp2(const Formula &f, mlir::Value x);

} // namespace sluice::cpu
