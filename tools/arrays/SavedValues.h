// Values within a function that the gradients of its results read. A recorded call returns them, as operators of
// PyTorch save tensors, so that `backward` does not compute them again.
#pragma once

#include "tools/arrays/CallGraph.h"
#include <vector>

namespace sluice::detail {

/// The values of a traced function that the gradients with respect to these operands read. Values that are operands,
/// results or constants are not saved. Neither are values that elementwise ops and data movements compute from operands,
/// results and saved values: the backward program computes them within its kernels. Changes the graph.
std::vector<SavedValue> findSaved(CallGraph &call, const std::vector<bool> &isDifferentiated);

/// These values in a graph in which the function was traced after `last`. Throws Error if the trace built other ops than
/// that of findSaved.
std::vector<mlir::Value> valuesOf(GraphImpl &graph, mlir::Operation *last, const std::vector<SavedValue> &saved,
                                  const char *function, std::source_location where);
/// Makes the consumers of these values read inputs that contain them. Throws Error as valuesOf.
void useSaved(GraphImpl &graph, mlir::Operation *last, const std::vector<SavedValue> &saved,
              llvm::ArrayRef<Tensor> given, const char *function, std::source_location where);

} // namespace sluice::detail
