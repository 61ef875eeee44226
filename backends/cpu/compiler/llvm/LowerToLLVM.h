// Lowers stage functions to the LLVM dialect.
//
// They may use func, scf, cf, arith, math, vector, LLVM and the other dialects that convert to LLVM one to one. Nothing
// reassociates or contracts: a multiply-add exists only where the generator wrote vector.fma or math.fma.
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <memory>

namespace sluice::cpu {

/// Holds the conversion patterns, which are built once and reused for every module.
class LowerToLLVM {
public:
  /// `polynomialMath`: functions of f32 that have a polynomial (MathFunctions.h) use it. All others call libm lane by
  /// lane.
  LowerToLLVM(mlir::MLIRContext &context, bool polynomialMath);
  ~LowerToLLVM();

  /// Also removes unused code. A failure has emitted its reason.
  mlir::LogicalResult run(mlir::ModuleOp module) const;

private:
  struct Patterns;
  std::unique_ptr<Patterns> patterns;
};

} // namespace sluice::cpu
