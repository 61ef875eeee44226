// Tensors with their dimensions in another order.
#pragma once

#include "ir/reference/HostTensor.h"

namespace sluice::ir {

/// A copy whose dimension i is dimension order[i] of the tensor.
HostTensor permuted(const HostTensor &tensor, llvm::ArrayRef<int64_t> order);

} // namespace sluice::ir
