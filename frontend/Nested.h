// Functions of the user that build ops within an op: a step of a scan, a branch.
#pragma once

#include "Call.h"

namespace sluice::detail {

llvm::SmallVector<mlir::Value> valuesOf(llvm::ArrayRef<Tensor> tensors);
std::vector<Tensor> tensorsOf(GraphImpl &graph, mlir::ValueRange values);

/// Fails where an op of the block is not on values alone; `what` names the block.
void requireValueOps(const Call &call, mlir::Block &block, const char *what);

} // namespace sluice::detail
