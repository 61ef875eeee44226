// Convolutions and pools.
#include "Call.h"

#include <limits>

using namespace mlir;

namespace sluice {

using detail::Call;

/// That both numbers are at least `least` and safe to calculate with.
static void requireRange(const Call &call, const char *what, Size2 size, int64_t least) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  for (int64_t n : {size.h, size.w}) {
    if (n < least)
      call.fail(std::string(what) + (least == 1 ? " is positive" : " is at least 0") + ", not " + std::to_string(n));
    if (n > most)
      call.fail(std::string(what) + " is at most " + std::to_string(most) + ", not " + std::to_string(n));
  }
}

/// That a window, dilated, fits into the padded image, or hangs over its end by no more than `over`.
static void requireFit(const Call &call, const Tensor &x, Size2 kernel, Size2 padding, Size2 dilation, Size2 over = 0) {
  auto check = [&](int64_t size, int64_t window, int64_t pad, int64_t gap, int64_t more) {
    int64_t extent = gap * (window - 1) + 1;
    if (size + 2 * pad + more < extent)
      call.fail("the window of " + std::to_string(extent) + " is larger than the padded input of " +
                std::to_string(size + 2 * pad) +
                (more > 0 ? " and hangs over it by more than " + std::to_string(more) : ""));
  };
  check(Call::shape(x)[2], kernel.h, padding.h, dilation.h, over.h);
  check(Call::shape(x)[3], kernel.w, padding.w, dilation.w, over.w);
}

static NamedAttribute pair(Call &call, StringRef name, Size2 size) { return call.list(name, {size.h, size.w}); }
/// top, left, bottom, right
static NamedAttribute sides(Call &call, Size2 padding) {
  return call.list("padding", {padding.h, padding.w, padding.h, padding.w});
}

static void requireImages(const Call &call, const Tensor &x) {
  call.requireFloat(x);
  call.requireRank("the input", x, 4);
  if (ShapedType::isDynamic(Call::shape(x)[2]) || ShapedType::isDynamic(Call::shape(x)[3]))
    call.fail("the batch dimension cannot be a height or width");
}

Tensor conv2d(Arg x, const Tensor &weight, const Tensor &bias, ConvOptions options) {
  Call call("conv2d", Call::present({x.tensor, weight, bias}), x.where);
  requireImages(call, x.tensor);
  call.requireSameDType(x.tensor, weight);
  call.requireRank("weight", weight, 4);
  requireRange(call, "stride", options.stride, 1);
  requireRange(call, "dilation", options.dilation, 1);
  requireRange(call, "padding", options.padding, 0);
  ArrayRef<int64_t> w = Call::shape(weight);
  int64_t channels = Call::shape(x.tensor)[1], groups = options.groups;
  if (groups <= 0 || channels % groups != 0 || w[0] % groups != 0)
    call.fail(std::to_string(groups) + " groups do not divide " + call.print(channels) + " input and " +
              call.print(w[0]) + " output channels");
  if (channels / groups != w[1])
    call.fail("input channels differ: " + call.print(channels) + " and " + call.print(w[1] * groups));
  requireFit(call, x.tensor, {w[2], w[3]}, options.padding, options.dilation);
  Tensor y = call.emit<ir::Conv2dOp>({x.tensor, weight},
                                     {pair(call, "stride", options.stride), sides(call, options.padding),
                                      pair(call, "dilation", options.dilation), call.integer("groups", groups)});
  return call.plusBias(y, bias, 1);
}

/// The stride of a pool: its kernel's size unless given.
static Size2 strideOf(const Call &call, Size2 stride, Size2 kernel) {
  requireRange(call, "kernel_size", kernel, 1);
  requireRange(call, "stride", stride, 0);
  return {stride.h == 0 ? kernel.h : stride.h, stride.w == 0 ? kernel.w : stride.w};
}

/// Of windows at distances of `stride`, which with `ceil` may hang over the end by less than that.
static void requirePool(const Call &call, const Tensor &x, Size2 kernel, Size2 stride, Size2 padding, Size2 dilation,
                        bool ceil) {
  requireRange(call, "padding", padding, 0);
  requireRange(call, "dilation", dilation, 1);
  if (2 * padding.h > kernel.h || 2 * padding.w > kernel.w)
    call.fail("padding is at most half the kernel's size");
  requireFit(call, x, kernel, padding, dilation, ceil ? Size2(stride.h - 1, stride.w - 1) : Size2(0));
}

Tensor max_pool2d(Arg x, Size2 kernel_size, MaxPoolOptions options) {
  Call call("max_pool2d", x);
  requireImages(call, x.tensor);
  Size2 stride = strideOf(call, options.stride, kernel_size);
  requirePool(call, x.tensor, kernel_size, stride, options.padding, options.dilation, options.ceil_mode);
  SmallVector<NamedAttribute> attributes{pair(call, "kernel", kernel_size), pair(call, "stride", stride),
                                         sides(call, options.padding), pair(call, "dilation", options.dilation)};
  if (options.ceil_mode)
    attributes.push_back(call.unit("ceil_mode"));
  return call.emit<ir::MaxPool2dOp>({x.tensor}, attributes);
}

Tensor avg_pool2d(Arg x, Size2 kernel_size, AvgPoolOptions options) {
  Call call("avg_pool2d", x);
  requireImages(call, x.tensor);
  Size2 stride = strideOf(call, options.stride, kernel_size);
  requirePool(call, x.tensor, kernel_size, stride, options.padding, 1, options.ceil_mode);
  SmallVector<NamedAttribute> attributes{pair(call, "kernel", kernel_size), pair(call, "stride", stride),
                                         sides(call, options.padding)};
  if (options.ceil_mode)
    attributes.push_back(call.unit("ceil_mode"));
  if (options.count_include_pad)
    attributes.push_back(call.unit("count_include_pad"));
  return call.emit<ir::AvgPool2dOp>({x.tensor}, attributes);
}

} // namespace sluice
