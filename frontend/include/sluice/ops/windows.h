// Convolutions and pools, of floats. Images are [N, C, H, W], lines [N, C, L]; PyTorch's convolutions and pools also
// accept them without N. Only N may be the batch. Padding is on both sides of a dimension; `padding_end`, which PyTorch
// lacks, is the padding below and to the right, instead of `padding`. A window, dilated, must fit into the padded input.
#pragma once

#include "sluice/tensor.h"

#include <cstdint>
#include <optional>

namespace sluice {

/// Options of conv2d: those of torch.nn.functional.conv2d. Padding is of zeros, in elements.
struct ConvOptions {
  Size2 stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1; ///< divides both numbers of channels
  std::optional<Size2> padding_end = {};
};
/// The cross-correlation of x [N, C, H, W] with weight [O, C / groups, kH, kW], plus bias [O]: [N, O, H', W'], with
/// H' = (H + padding + padding_end - dilation * (kH - 1) - 1) / stride + 1, rounded down.
Tensor conv2d(Arg x, const Tensor &weight, const Tensor &bias = {}, ConvOptions options = {});

/// Options of max_pool2d.
struct MaxPoolOptions {
  Size2 stride = 0;                ///< 0: the kernel's size
  Size2 padding = 0, dilation = 1; ///< padding is at most half the kernel's size and never the maximum
  bool ceil_mode = false;          ///< the last window may exceed the padded input, by less than the stride
  /// With it, padding on either side may be anything less than the dilated kernel.
  std::optional<Size2> padding_end = {};
};
/// The maximum of each window: [N, C, H', W']; NaN if the window has one. The gradient goes to the first maximum. A
/// dilated window without an element of x gives -inf, and no gradient. A window has at most 256 elements. PyTorch's
/// return_indices is not available.
Tensor max_pool2d(Arg x, Size2 kernel_size, MaxPoolOptions options = {});

/// Options of avg_pool2d.
struct AvgPoolOptions {
  Size2 stride = 0;              ///< 0: the kernel's size
  Size2 padding = 0;             ///< at most half the kernel's size
  bool ceil_mode = false;        ///< as in MaxPoolOptions
  bool count_include_pad = true; ///< padding counts as elements of value 0
  /// With it, padding on either side may be anything less than the kernel.
  std::optional<Size2> padding_end = {};
};
/// The mean of each window: [N, C, H', W']. PyTorch's divisor_override is not available.
Tensor avg_pool2d(Arg x, Size2 kernel_size, AvgPoolOptions options = {});

/// Options of conv1d: as ConvOptions.
struct ConvOptions1d {
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  std::optional<std::int64_t> padding_end = {};
};
/// The cross-correlation of x [N, C, L] with weight [O, C / groups, k], plus bias [O]: [N, O, L'].
Tensor conv1d(Arg x, const Tensor &weight, const Tensor &bias = {}, ConvOptions1d options = {});

/// Options of conv_transpose2d. output_padding must be below the stride or the dilation; with padding_end it may be any
/// number.
struct ConvTransposeOptions {
  Size2 stride = 1, padding = 0, output_padding = 0;
  std::int64_t groups = 1;
  Size2 dilation = 1;
  std::optional<Size2> padding_end = {};
};
/// The gradient of conv2d with respect to its input, of x [N, C, H, W] and weight [C, O / groups, kH, kW], plus bias
/// [O]. The result has height (H - 1) * stride - padding - padding_end + dilation * (kH - 1) + output_padding + 1, and
/// width by the same rule: padding crops the full result. output_padding below the stride selects one of the sizes for
/// which conv2d returns H. A larger one appends rows that no window covers: they are the bias.
Tensor conv_transpose2d(Arg x, const Tensor &weight, const Tensor &bias = {}, ConvTransposeOptions options = {});

/// Means over `output_size` windows. All windows have one size if `output_size` divides the image size. Otherwise their
/// sizes may differ by one and they may overlap. An infinity or NaN affects only the means of its windows. Sizes are at
/// most 65535 unless they divide the image size.
Tensor adaptive_avg_pool2d(Arg x, Size2 output_size);
/// Repeats every element along height and width: PyTorch's mode "nearest" with whole scale factors.
Tensor interpolate(Arg x, Size2 scale_factor);

} // namespace sluice
