// The reference function of `bernoulli`, which the reference of dropout shares.
#pragma once

#include "ir/reference/HostTensor.h"
#include "llvm/ADT/APFloat.h"

namespace sluice::ir {

/// The result of `bernoulli`, where `first` is the number of the first row.
HostTensor drawBernoulli(const HostTensor &key, int64_t first, uint64_t stream, const llvm::APFloat &p,
                         mlir::RankedTensorType type, int64_t rows);

} // namespace sluice::ir
