// Functions of f32 vectors for which MLIR's polynomials are too inaccurate or do not cover all floats.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"

namespace sluice::cpu {

/// Expands exp, expm1, log, log1p, erf, pow, sin, cos, asin, acos, atan, sinh, cosh, tanh, asinh, acosh and atanh of f32.
/// Results are within 2 ulp for all arguments. Signed zeros, infinities, NaN and subnormals are as in C. For arguments of
/// at least 2^40, sin and cos call libm.
///
/// MLIR's expansions are rejected: its tanh and erf are within 5 ulp, its erf(-0) is 0, and its sin and cos lose all
/// relative accuracy near their zeros.
void populateMathFunctionPatterns(mlir::RewritePatternSet &patterns);

/// Whether the op expands to many instructions: a polynomial, or calls of libm lane by lane.
bool isLongFunction(mlir::Operation *op);

/// Attribute of ops that outlineMarkedFunctions replaces by calls.
inline constexpr llvm::StringLiteral kOutlinedAttr = "sluice.outlined";

/// Replaces marked ops by calls of private functions, one for each op name and type.
void outlineMarkedFunctions(mlir::ModuleOp module);

} // namespace sluice::cpu
