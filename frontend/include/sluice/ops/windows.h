// Convolutions and pools.
#pragma once

#include "sluice/tensor.h"

#include <cstdint>

namespace sluice {

struct ConvOptions {
  Size2 stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
};
/// Cross-correlation of x [N, C, H, W] with weight [O, C / groups, kH, kW].
Tensor conv2d(Arg x, const Tensor &weight, const Tensor &bias = {}, ConvOptions options = {});

struct MaxPoolOptions {
  Size2 stride = 0; ///< 0: the kernel's size
  Size2 padding = 0, dilation = 1;
  bool ceil_mode = false; ///< the last window may hang over the end; so may the only one, by less than a stride
};
Tensor max_pool2d(Arg x, Size2 kernel_size, MaxPoolOptions options = {});

struct AvgPoolOptions {
  Size2 stride = 0; ///< 0: the kernel's size
  Size2 padding = 0;
  bool ceil_mode = false, count_include_pad = true;
};
Tensor avg_pool2d(Arg x, Size2 kernel_size, AvgPoolOptions options = {});

struct ConvOptions1d {
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};
/// Cross-correlation of x [N, C, L] with weight [O, C / groups, k].
Tensor conv1d(Arg x, const Tensor &weight, const Tensor &bias = {}, ConvOptions1d options = {});

struct ConvTransposeOptions {
  Size2 stride = 1, padding = 0, output_padding = 0;
  std::int64_t groups = 1;
  Size2 dilation = 1;
};
/// The gradient of conv2d with respect to its input, of x [N, C, H, W] and weight [C, O / groups, kH, kW]. The result
/// is (H - 1) * stride - 2 * padding + dilation * (kH - 1) + output_padding + 1 high, and its width by the same rule:
/// of the sizes that conv2d would make H of, output_padding, which is below the stride, chooses one.
Tensor conv_transpose2d(Arg x, const Tensor &weight, const Tensor &bias = {}, ConvTransposeOptions options = {});

/// Means over `output_size` windows. All windows have one size if `output_size` divides the image size. Otherwise,
/// their sizes differ by one, and they may overlap. An infinity or NaN affects only the means of its windows.
Tensor adaptive_avg_pool2d(Arg x, Size2 output_size);
/// Every element so many times along height and width (PyTorch's mode "nearest").
Tensor interpolate(Arg x, Size2 scale_factor);

} // namespace sluice
