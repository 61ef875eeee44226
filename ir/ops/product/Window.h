// One spatial dimension of a convolution or pool: where its windows lie.
#pragma once

#include "ir/ops/Inference.h"
#include <array>

namespace sluice::ir {

/// Window i takes elements i * stride - before + tap * dilation for tap in [0, kernel), of `size` elements.
struct Window {
  int64_t size, kernel, stride, before, after, dilation;

  /// The elements from a window's first tap to its last.
  int64_t extent() const { return (kernel - 1) * dilation + 1; }
  /// How many windows there are, none if it is not positive. With `ceil` the last may hang over the end, but not start
  /// beyond the input; so may the only one, if it is larger than the padded input by less than the stride.
  int64_t positions(bool ceil = false) const;
  /// The element at a tap of a window; it may lie in the padding.
  int64_t element(int64_t position, int64_t tap) const { return position * stride - before + tap * dilation; }
  bool holds(int64_t element) const { return element >= 0 && element < size; }
};

using Windows = std::array<Window, 2>;

/// The windows of height and width. `padding` is [top, left, bottom, right].
Windows getWindows(llvm::ArrayRef<int64_t> size, llvm::ArrayRef<int64_t> kernel, llvm::ArrayRef<int64_t> stride,
                   llvm::ArrayRef<int64_t> padding, llvm::ArrayRef<int64_t> dilation);

/// Checks attributes that may hold anything, and that there is a window.
mlir::LogicalResult checkWindows(MaybeLocation loc, llvm::ArrayRef<int64_t> size, llvm::ArrayRef<int64_t> kernel,
                                 llvm::ArrayRef<int64_t> stride, llvm::ArrayRef<int64_t> padding,
                                 llvm::ArrayRef<int64_t> dilation, bool ceil = false);

} // namespace sluice::ir
