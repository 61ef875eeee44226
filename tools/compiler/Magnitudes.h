// How large the numbers are that a kernel adds up on the way to each element of its results.
#pragma once

#include "ir/Dialect.h"

namespace sluice::compiler {

/// For each result of a kernel's body a tensor of magnitudes: what its rounding errors are proportional to. A sum of
/// terms that cancel is small, its magnitude, the sum of their absolute values, is not.
///
/// An elementwise op has its own result's magnitude and, for each operand, the operand's times how much the result
/// follows it. Other ops are evaluated on the magnitudes of their operands: products, convolutions and sums then add up
/// absolute values; ops that are no sums have at least their results' own. With `perturbs` an op that is not elementwise
/// also has what its results change by when its operands change by a few roundings of their magnitudes: a norm of values with
/// a large mean, or an attention gradient whose terms cancel. A result of integers or booleans has a magnitude where those
/// roundings change it, and 0 elsewhere.
llvm::SmallVector<ir::HostTensor> magnitudesOf(mlir::Block &body, llvm::ArrayRef<ir::HostTensor> operands, int64_t rows,
                                               bool perturbs = false);

/// For each result how far its elements may be off because halves on the way to them were rounded the other way: those that
/// ops of the body give. It is zero where there are none.
llvm::SmallVector<ir::HostTensor> errorsOfHalves(mlir::Block &body, llvm::ArrayRef<ir::HostTensor> operands,
                                                 int64_t rows);

/// The results of a kernel's body with each op's results rounded to their element types, so that they overflow and underflow
/// as the types do.
llvm::SmallVector<ir::HostTensor> roundedResultsOf(mlir::Block &body, llvm::ArrayRef<ir::HostTensor> operands,
                                                   int64_t rows);

} // namespace sluice::compiler
