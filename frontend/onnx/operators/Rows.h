// A batch that is merged with another dimension, which some functions of the graph API refuse.
#pragma once

#include "sluice/ops.h"

namespace sluice::onnx {

/// The factor of the batch in dimension 0: 5 for [batch*5, ...], and 1 for other shapes.
inline std::int64_t factorOfRows(const Tensor &x) { return x.dim() > 0 && x.size(0).symbolic() ? x.size(0).times : 1; }
/// x [batch*5, ...] with another shape after the batch, such as [batch, 5, ...].
inline Tensor withRows(const Tensor &x, std::vector<Dim> rest) {
  Dim rows = x.size(0);
  rows.times = 1;
  rest.insert(rest.begin(), rows);
  return x.reshape(Shape(std::move(rest)));
}

} // namespace sluice::onnx
