// Transposes of transposes: one, or none if they cancel.
#include "frontend/onnx/recognize/Recognize.h"
#include "sluice/ops.h"

#include <numeric>

namespace sluice::onnx {

static std::vector<std::int64_t> orderOf(const Node &transpose) {
  std::vector<std::int64_t> reversed(static_cast<std::size_t>(transpose.rank(0)));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return transpose.integers("perm", reversed);
}

bool recognizeTransposes(Node &node) {
  auto first = node.producer(0, "Transpose");
  if (!first)
    return false;
  std::vector<std::int64_t> inner = orderOf(*first), outer = orderOf(node), both;
  if (inner.size() != outer.size())
    return false;
  for (std::int64_t dim : outer) {
    if (dim < 0 || dim >= std::int64_t(inner.size()))
      return false;
    both.push_back(inner[std::size_t(dim)]);
  }
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
