// Magnitudes of the terms that a kernel adds for each element of its results.
#pragma once

#include "ir/Dialect.h"

namespace sluice::compiler {

/// For each result of a kernel's body, a tensor of magnitudes. Rounding errors are proportional to magnitudes. A sum of
/// terms that cancel is small, but its magnitude, the sum of their absolute values, is not.
///
/// An elementwise op adds to the magnitude of its result the magnitude of each operand times the result's
/// sensitivity to it. Other ops are evaluated on the magnitudes of their operands: products, convolutions and sums then
/// add absolute values. Ops that are not sums have at least the magnitudes of their results.
///
/// With `perturbs`, an op that is not elementwise also adds the change of its results when its operands change by a few
/// roundings of their magnitudes. Examples are a norm of values with a large mean, and an attention gradient whose
/// terms cancel. An integer or boolean result has a magnitude if those roundings change it, and 0 otherwise.
llvm::SmallVector<ir::HostTensor> magnitudesOf(mlir::Block &body, llvm::ArrayRef<ir::HostTensor> operands, int64_t rows,
                                               bool perturbs = false);

/// For each result, the possible error of its elements from two-byte floats that the body's ops round to the other
/// neighbor. Zero if there are none.
llvm::SmallVector<ir::HostTensor> errorsOfHalves(mlir::Block &body, llvm::ArrayRef<ir::HostTensor> operands,
                                                 int64_t rows);

/// The results of a kernel's body with each op's results rounded to their element types. The results overflow and
/// underflow as those types do.
llvm::SmallVector<ir::HostTensor> roundedResultsOf(mlir::Block &body, llvm::ArrayRef<ir::HostTensor> operands,
                                                   int64_t rows);

/// The same, but attention is also computed from hidden keys. Such a result is NaN where a hidden key or its value is
/// not finite. The op allows both.
llvm::SmallVector<ir::HostTensor> hiddenResultsOf(mlir::Block &body, llvm::ArrayRef<ir::HostTensor> operands,
                                                  int64_t rows);

} // namespace sluice::compiler
