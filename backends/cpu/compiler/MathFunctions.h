// Functions of f32 vectors, for which MLIR's polynomials are too inaccurate or leave out part of the floats.
#pragma once

#include "mlir/IR/PatternMatch.h"

namespace sluice::cpu {

/// Expands exp, expm1, log, log1p, tanh, erf, sin, cos and pow of f32, to within 2 ulp for all arguments; signed zeros,
/// infinities, NaN and subnormals are as in C. (MLIR: tanh and erf to 5 ulp, erf(-0) = 0; sin and cos lose all relative accuracy
/// near their zeros.) Arguments of sin and cos from 2^40 on call libm.
void populateMathFunctionPatterns(mlir::RewritePatternSet &patterns);

} // namespace sluice::cpu
