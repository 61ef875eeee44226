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

/// RAII: the nodes that are imported are in an iteration of a scan, whose number is a scalar.
class AtIteration {
public:
  AtIteration(Node &node, const Tensor &number) : iterations(node.scanIterations()) { iterations.push_back(number); }
  AtIteration(const AtIteration &) = delete;
  ~AtIteration() { iterations.pop_back(); }

private:
  std::vector<Tensor> &iterations;
};

} // namespace sluice::onnx
