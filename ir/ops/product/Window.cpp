#include "ir/ops/product/Window.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace sluice::ir {

int64_t Window::positions(bool ceil) const {
  int64_t room = size + before + after - extent();
  if (!ceil)
    return llvm::divideFloorSigned(room, stride) + 1;
  int64_t count = llvm::divideFloorSigned(room + stride - 1, stride) + 1;
  return (count - 1) * stride >= size + before ? count - 1 : count;
}

std::pair<int64_t, int64_t> Window::positionsWith(int64_t tap) const {
  int64_t start = element(0, tap), first = std::max<int64_t>(0, llvm::divideCeilSigned(-start, stride)),
          end = std::min(positions(), llvm::divideFloorSigned(size - 1 - start, stride) + 1);
  return {first, std::max(first, end)};
}

int64_t Window::countTaps() const {
  int64_t count = 0;
  for (int64_t tap = 0; tap < kernel; ++tap) {
    auto [first, end] = positionsWith(tap);
    count += end - first;
  }
  return count;
}

Windows getWindows(ArrayRef<int64_t> size, ArrayRef<int64_t> kernel, ArrayRef<int64_t> stride,
                   ArrayRef<int64_t> padding, ArrayRef<int64_t> dilation) {
  auto get = [&](unsigned dim) {
    return Window{size[dim], kernel[dim], stride[dim], padding[dim], padding[dim + 2], dilation[dim]};
  };
  return {get(0), get(1)};
}

LogicalResult checkWindows(MaybeLocation loc, ArrayRef<int64_t> size, ArrayRef<int64_t> kernel,
                           ArrayRef<int64_t> stride, ArrayRef<int64_t> padding, ArrayRef<int64_t> dilation, bool ceil) {
  if (failed(checkNumbers(loc, "size", size, 2, 1)) || failed(checkNumbers(loc, "kernel", kernel, 2, 1)) ||
      failed(checkNumbers(loc, "stride", stride, 2, 1)) || failed(checkNumbers(loc, "padding", padding, 4, 0)) ||
      failed(checkNumbers(loc, "dilation", dilation, 2, 1)))
    return failure();
  for (const Window &window : getWindows(size, kernel, stride, padding, dilation)) {
    int64_t padded = window.size + window.before + window.after;
    if (window.positions(ceil) < 1)
      return inferenceFailure(loc, "the kernel is larger than the padded input: ", window.extent(), " and ", padded);
  }
  return success();
}

} // namespace sluice::ir
