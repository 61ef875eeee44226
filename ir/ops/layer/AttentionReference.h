// What attention gives where masks hide keys whose elements are not finite.
#pragma once

#include "ir/Dialect.h"

namespace sluice::ir {

/// The results of an op. Those of attention and of its gradients are computed from hidden keys, too: where such a key,
/// its value, or a query that it is hidden from has a NaN or an infinity, a result may be NaN, and `evaluate` gives a
/// number. The ops define neither.
llvm::SmallVector<HostTensor> evaluateHiddenKeys(mlir::Operation *op, llvm::ArrayRef<HostTensor> operands,
                                                 int64_t rows);

} // namespace sluice::ir
