// Functions of f32 vectors for which MLIR's polynomials are too inaccurate or do not cover all floats.
#pragma once

#include "mlir/IR/PatternMatch.h"

namespace sluice::cpu {

/// Expands exp, expm1, log, log1p, tanh, erf, sin, cos and pow of f32. Results are within 2 ulp for all arguments.
/// Signed zeros, infinities, NaN and subnormals are as in C. In MLIR, tanh and erf are within 5 ulp, and erf(-0) is 0.
/// There, sin and cos lose all relative accuracy near their zeros. sin and cos call libm for arguments of at least
/// 2^40.
void populateMathFunctionPatterns(mlir::RewritePatternSet &patterns);

} // namespace sluice::cpu
