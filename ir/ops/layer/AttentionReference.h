// A second reference for attention, for masks that hide keys whose elements are not finite.
#pragma once

#include "ir/Dialect.h"

namespace sluice::ir {

/// The results of an op. Attention and its gradients are computed with hidden keys included. If such a key, its value,
/// or a query from which it is hidden has a NaN or an infinity, a result may therefore be NaN where `evaluate` returns
/// a number. The ops allow both.
llvm::SmallVector<HostTensor> evaluateHiddenKeys(mlir::Operation *op, llvm::ArrayRef<HostTensor> operands,
                                                 int64_t rows);

} // namespace sluice::ir
