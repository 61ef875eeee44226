// One spatial dimension of a convolution or pool: the positions of its windows.
#pragma once

#include "ir/ops/Inference.h"
#include <array>
#include <utility>

namespace sluice::ir {

/// Window i takes elements i * stride - before + tap * dilation for tap in [0, kernel), of `size` elements.
struct Window {
  int64_t size, kernel, stride, before, after, dilation;

  /// The elements from a window's first tap to its last.
  int64_t extent() const { return (kernel - 1) * dilation + 1; }
  /// The number of windows; none if not positive. With `ceil` it is rounded up: the last window may extend past the
  /// padded input, but must start within the input or the padding before it. So a single window may exceed the padded
  /// input by less than the stride.
  int64_t positions(bool ceil = false) const;
  /// The element at a tap of a window, possibly in the padding.
  int64_t element(int64_t position, int64_t tap) const { return position * stride - before + tap * dilation; }
  bool holds(int64_t element) const { return element >= 0 && element < size; }
  /// The windows [first, second) in which this tap is an element. In all other windows it is padding.
  std::pair<int64_t, int64_t> positionsWith(int64_t tap) const;
  /// The number of taps of all windows that are elements, not padding.
  int64_t countTaps() const;
};

using Windows = std::array<Window, 2>;

/// The windows of height and width. `padding` is [top, left, bottom, right].
Windows getWindows(llvm::ArrayRef<int64_t> size, llvm::ArrayRef<int64_t> kernel, llvm::ArrayRef<int64_t> stride,
                   llvm::ArrayRef<int64_t> padding, llvm::ArrayRef<int64_t> dilation);

/// Checks untrusted attributes, and that there is at least one window.
mlir::LogicalResult checkWindows(MaybeLocation loc, llvm::ArrayRef<int64_t> size, llvm::ArrayRef<int64_t> kernel,
                                 llvm::ArrayRef<int64_t> stride, llvm::ArrayRef<int64_t> padding,
                                 llvm::ArrayRef<int64_t> dilation, bool ceil = false);

} // namespace sluice::ir
