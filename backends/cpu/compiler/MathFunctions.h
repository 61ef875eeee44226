// Functions of f32 vectors for which MLIR's polynomials are too inaccurate.
#pragma once

#include "mlir/IR/PatternMatch.h"

namespace sluice::cpu {

/// Expands tanh, erf, sin and cos of f32, before MLIR's own expansions, to within 2 ulp; signed zeros and NaN are kept.
/// (MLIR: tanh and erf to 5 ulp, erf(-0) = 0; sin and cos lose all relative accuracy near their zeros.) Arguments of
/// sin and cos beyond 2^30 in magnitude give some value in [-1, 1].
void populateMathFunctionPatterns(mlir::RewritePatternSet &patterns);

} // namespace sluice::cpu
