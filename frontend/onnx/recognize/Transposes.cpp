// Transposes of transposes: one, or none if they cancel.
#include "frontend/onnx/operators/Movement.h"
#include "frontend/onnx/recognize/Recognize.h"
#include "sluice/ops.h"

#include <numeric>

namespace sluice::onnx {

bool recognizeTransposes(Node &node) {
  auto first = node.producer(0, "Transpose");
  if (!first)
    return false;
  std::vector<std::int64_t> inner = orderOfDims(*first), both;
  for (std::int64_t dim : orderOfDims(node))
    both.push_back(inner[std::size_t(dim)]);
  std::vector<std::int64_t> identity(both.size());
  std::iota(identity.begin(), identity.end(), 0);
  ValuePtr x = first->inputValue(0);
  if (both == identity)
    node.set(0, x);
  else
    node.set(0, permute(node.tensorOf(x), both), node.type(0));
  return true;
}

} // namespace sluice::onnx
