// The windows of convolutions and pools.
#pragma once

#include "frontend/onnx/import/Node.h"

#include <cstdint>
#include <vector>

namespace sluice::onnx {

/// One dimension of the windows of an image.
struct WindowDim {
  std::int64_t size = 1, kernel = 1, stride = 1, dilation = 1;
  std::int64_t before = 0, after = 0; ///< padding

  /// The elements from the first to the last of a window.
  std::int64_t extent() const { return dilation * (kernel - 1) + 1; }
  /// The number of windows. With `ceil`, the last one may exceed the padding, but must begin before its end.
  std::int64_t positions(bool ceil = false) const;
};

/// The windows of input 0, [N, C, ...], one per dimension from 2 on, with the attributes strides, dilations, pads and
/// auto_pad. Throws Unsupported for numbers out of range.
std::vector<WindowDim> windowsOf(const Node &node, const Dims &kernel);
/// A list attribute with one number per dimension, each from `least` to 2^31 - 1; all `otherwise` if it is absent.
Dims windowAttribute(const Node &node, const char *name, std::size_t count, std::int64_t otherwise, std::int64_t least);
/// x [N, C, ...] with the dimensions merged to [N, c, h, w]: h are the dimensions from `first` on, w those from `second`
/// on. A factor of the batch becomes a factor of c.
Tensor asImages(const Tensor &x, std::int64_t first, std::int64_t second);

/// The convolution of x, which has the shape of input 0, by the attributes of the node. The bias may be empty.
Tensor convolved(const Node &node, const Tensor &x, const Tensor &weight, const Tensor &bias);

} // namespace sluice::onnx
