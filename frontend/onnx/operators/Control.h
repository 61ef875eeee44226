// Calls of the graphs that are attributes of a node.
#pragma once

#include "frontend/onnx/import/Node.h"

#include <vector>

namespace sluice::onnx {

/// The results of a graph attribute, of which there are `count`.
std::vector<ValuePtr> resultsOf(Node &node, const file::Graph &body, const std::vector<ValuePtr> &inputs,
                                std::size_t count);
/// The same as tensors; their types are appended to `types`.
std::vector<Tensor> tensorsOf(Node &node, const std::vector<ValuePtr> &values,
                              std::vector<ElementType> *types = nullptr);

} // namespace sluice::onnx
