// Reductions to one value, on top of ElementBuilder::reduce.
#pragma once

#include "ir/build/ElementBuilder.h"
#include "ir/build/Lane.h"
#include <limits>

namespace sluice::ir {

using Combine = Lane (*)(Lane, Lane);

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline Lane addLanes(Lane a, Lane b) { return a + b; }

/// Combines `term` at every index of `extents`, starting at `identity`. Terms and the result have type `element`;
/// partial results have its accumulator type.
mlir::Value fold(ElementBuilder &builder, llvm::ArrayRef<int64_t> extents, mlir::Type element, double identity,
                 Combine combine, llvm::function_ref<mlir::Value(llvm::ArrayRef<mlir::AffineExpr>)> term);

/// The same with a `step` that computes the next value from the value before, for example by a multiply-add. The values
/// have the accumulator type of `element`. `combine` merges the values of two parts.
mlir::Value
accumulate(ElementBuilder &builder, llvm::ArrayRef<int64_t> extents, mlir::Type element, double identity,
           Combine combine,
           llvm::function_ref<mlir::Value(llvm::ArrayRef<mlir::AffineExpr> index, mlir::Value before)> step);

} // namespace sluice::ir
