// Elements of images at computed places.
#pragma once

#include "frontend/onnx/import/Node.h"
#include "sluice/tensor.h"

#include <string>
#include <vector>

namespace sluice::onnx {

/// The attributes of GridSample.
struct Sampler {
  std::string mode = "linear", padding = "zeros";
  bool alignsCorners = false; ///< reflection is at the center of the first and the last element, not at their edges
};

/// x [..., C, elements], whose elements form an image of these sizes, at places in units of its elements, one tensor
/// [..., 1, P] for each dimension: [..., C, P]. Elements of weight 0 are not read. Throws Unsupported for modes that do
/// not exist.
Tensor sampled(const Tensor &x, const Dims &sizes, const std::vector<Tensor> &places, const Sampler &sampler);

} // namespace sluice::onnx
