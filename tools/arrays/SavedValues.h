// Intermediate values of a function that the gradients of its results read. A recorded call returns them, so that
// `backward` does not compute them again. Operators of PyTorch save tensors in the same way.
#pragma once

#include "tools/arrays/CallGraph.h"
#include <vector>

namespace sluice::detail {

/// Finds the values of a traced function that the gradients with respect to these operands read. Operands, results and
/// constants are not saved. Neither are values that elementwise ops and data movements compute from operands, results
/// and saved values: the backward program computes them within its kernels. Changes the graph.
std::vector<SavedValue> findSaved(CallGraph &call, const std::vector<bool> &isDifferentiated);

/// The saved values in a graph in which the function was traced after the op `last`. Throws Error if the trace built
/// other ops than the trace of findSaved.
std::vector<mlir::Value> valuesOf(GraphImpl &graph, mlir::Operation *last, const std::vector<SavedValue> &saved,
                                  const char *function, std::source_location where);
/// Makes the consumers of these values read the inputs `given`. Throws Error as valuesOf does.
void useSaved(GraphImpl &graph, mlir::Operation *last, const std::vector<SavedValue> &saved,
              llvm::ArrayRef<Tensor> given, const char *function, std::source_location where);

} // namespace sluice::detail
