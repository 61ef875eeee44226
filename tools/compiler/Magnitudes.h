// How large the numbers are that a kernel adds up on the way to each element of its results.
#pragma once

#include "ir/Dialect.h"

namespace sluice::compiler {

/// For each result of a kernel's body a tensor of magnitudes: what its rounding errors are proportional to. A sum of
/// terms that cancel is small, its magnitude, the sum of their absolute values, is not.
///
/// An elementwise op has its own result's magnitude and, for each operand, the operand's times how much the result
/// follows it. Other ops are evaluated on the magnitudes of their operands: products, convolutions and sums then add up
/// absolute values; ops that are no sums have at least their results' own.
llvm::SmallVector<ir::HostTensor> magnitudesOf(mlir::Block &body, llvm::ArrayRef<ir::HostTensor> operands,
                                               int64_t rows);

/// For each result how far its elements may be off because halves on the way to them were rounded the other way: those that
/// ops of the body give. It is zero where there are none.
llvm::SmallVector<ir::HostTensor> errorsOfHalves(mlir::Block &body, llvm::ArrayRef<ir::HostTensor> operands,
                                                 int64_t rows);

} // namespace sluice::compiler
