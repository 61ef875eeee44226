// Operators of the domain ai.onnx.ml.
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Indexing.h"
#include "frontend/onnx/operators/Sizes.h"
#include "sluice/ops.h"

namespace sluice::onnx {

void binarized(Node &node) {
  Tensor x = node.tensor(0);
  double threshold = node.real("threshold", 0.0);
  Tensor compared = is_float(x.dtype()) ? x : x.to(f64);
  node.set(0, (compared > threshold).to(x.dtype()), node.type(0));
}

/// The elements of the last dimension at the indices, which are one list. A vector becomes a row.
void extractedFeatures(Node &node) {
  std::vector<Size> shape = node.shape(0);
  if (shape.empty() || !shape.back().isKnown())
    Node::fail("the index chooses rows of the batch");
  Tensor index = reshapedTo(node, indexInput(node, 1, shape.back().constant), {elementsOf(node.shape(1))});
  Tensor y = index_select(node.tensor(0), node.rank(0) - 1, index);
  node.set(0, shape.size() == 1 ? y.unsqueeze(0) : y, node.type(0));
}

} // namespace sluice::onnx
