// Convolutions and pools.
#include "frontend/graph/Call.h"

#include <limits>

using namespace mlir;

namespace sluice {

using detail::Call;

/// Throws unless both numbers are at least `least` and small enough to avoid overflow.
static void requireRange(const Call &call, const char *what, Size2 size, int64_t least) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  for (int64_t n : {size.h, size.w}) {
    if (n < least)
      call.fail(std::string(what) + (least == 1 ? " is positive" : " is at least 0") + ", not " + std::to_string(n));
    if (n > most)
      call.fail(std::string(what) + " is at most " + std::to_string(most) + ", not " + std::to_string(n));
  }
}

/// Padding above and to the left, and below and to the right.
struct Padding {
  Size2 begin, end;
};

/// Throws unless both are at least 0.
static Padding paddingOf(const Call &call, Size2 begin, const std::optional<Size2> &end) {
  requireRange(call, "padding", begin, 0);
  requireRange(call, "padding_end", end.value_or(begin), 0);
  return {begin, end.value_or(begin)};
}

/// Throws unless a dilated window fits into the padded image, or exceeds its end by at most `over`.
static void requireFit(const Call &call, const Tensor &x, Size2 kernel, const Padding &padding, Size2 dilation,
                       Size2 over = 0) {
  auto check = [&](int64_t padded, int64_t window, int64_t gap, int64_t more) {
    int64_t extent = gap * (window - 1) + 1;
    if (padded + more < extent)
      call.fail("the window of " + std::to_string(extent) + " is larger than the padded input of " +
                std::to_string(padded) + (more > 0 ? " and hangs over it by more than " + std::to_string(more) : ""));
  };
  check(Call::shape(x)[2] + padding.begin.h + padding.end.h, kernel.h, dilation.h, over.h);
  check(Call::shape(x)[3] + padding.begin.w + padding.end.w, kernel.w, dilation.w, over.w);
}

static NamedAttribute pair(Call &call, StringRef name, Size2 size) { return call.list(name, {size.h, size.w}); }
/// top, left, bottom, right
static NamedAttribute sides(Call &call, const Padding &padding) {
  return call.list("padding", {padding.begin.h, padding.begin.w, padding.end.h, padding.end.w});
}

static void requireImages(const Call &call, const Tensor &x) {
  call.requireFloat(x);
  call.requireRank("the input", x, 4);
  if (ShapedType::isDynamic(Call::shape(x)[2]) || ShapedType::isDynamic(Call::shape(x)[3]))
    call.fail("the batch dimension cannot be a height or width");
}

//===- convolutions -----------------------------------------------------------------------------------------------===//

/// conv2d for images and a four-dimensional weight.
static Tensor convolved(Call &call, const Tensor &x, const Tensor &weight, const Tensor &bias, ConvOptions options) {
  requireRange(call, "stride", options.stride, 1);
  requireRange(call, "dilation", options.dilation, 1);
  Padding padding = paddingOf(call, options.padding, options.padding_end);
  ArrayRef<int64_t> w = Call::shape(weight);
  int64_t channels = Call::shape(x)[1], groups = options.groups;
  if (groups <= 0 || channels % groups != 0 || w[0] % groups != 0)
    call.fail(std::to_string(groups) + " groups do not divide " + call.print(channels) + " input and " +
              call.print(w[0]) + " output channels");
  if (channels / groups != w[1])
    call.fail("input channels differ: " + call.print(channels) + " and " + call.print(w[1] * groups));
  requireFit(call, x, {w[2], w[3]}, padding, options.dilation);
  Tensor y =
      call.emit<ir::Conv2dOp>({x, weight}, {pair(call, "stride", options.stride), sides(call, padding),
                                            pair(call, "dilation", options.dilation), call.integer("groups", groups)});
  return call.plusBias(y, bias, 1);
}

Tensor conv2d(Arg x, const Tensor &weight, const Tensor &bias, ConvOptions options) {
  Call call("conv2d", Call::present({x.tensor, weight, bias}), x.where);
  requireImages(call, x.tensor);
  call.requireSameDType(x.tensor, weight);
  call.requireRank("weight", weight, 4);
  return convolved(call, x.tensor, weight, bias, options);
}

/// A line [.., L] as an image of height 1, [.., 1, L].
static Tensor asImage(Call &call, const Tensor &x) {
  ArrayRef<int64_t> line = Call::shape(x);
  return call.reshape(x, {line[0], line[1], 1, line[2]});
}

Tensor conv1d(Arg x, const Tensor &weight, const Tensor &bias, ConvOptions1d options) {
  Call call("conv1d", Call::present({x.tensor, weight, bias}), x.where);
  call.requireFloat(x.tensor);
  call.requireRank("the input", x.tensor, 3);
  call.requireSameDType(x.tensor, weight);
  call.requireRank("weight", weight, 3);
  if (llvm::is_contained(Call::shape(x.tensor).drop_front(), ShapedType::kDynamic))
    call.fail("the batch dimension cannot be the channels or the length");
  Tensor y = convolved(call, asImage(call, x.tensor), asImage(call, weight), bias,
                       {.stride = {1, options.stride},
                        .padding = {0, options.padding},
                        .dilation = {1, options.dilation},
                        .groups = options.groups,
                        .padding_end = Size2(0, options.padding_end.value_or(options.padding))});
  ArrayRef<int64_t> image = Call::shape(y);
  return call.reshape(y, {image[0], image[1], image[3]});
}

/// One dimension of a transposed convolution's result.
struct TransposedSize {
  int64_t size;  ///< of the op's result: an image of which conv2d has as many windows as x has elements
  int64_t after; ///< the padding after that image
  int64_t rest;  ///< elements that follow the op's result, which no window covers
};

/// conv2d ignores up to stride - 1 elements of the padded image after its last window. A larger output_padding first
/// replaces padding, which then crops less; the remainder becomes the rest.
static TransposedSize transposedSize(const Call &call, int64_t x, int64_t kernel, int64_t stride, int64_t before,
                                     int64_t after, int64_t outputPadding, int64_t dilation) {
  int64_t size = (x - 1) * stride - before - after + dilation * (kernel - 1) + outputPadding + 1;
  int64_t excess = std::max<int64_t>(0, outputPadding - (stride - 1)), replaced = std::min(after, excess);
  TransposedSize result{size - (excess - replaced), after - replaced, excess - replaced};
  if (result.size <= 0)
    call.fail("nothing is left of the result: " + std::to_string(result.size) + " elements");
  return result;
}

static void requireOutputPadding(const Call &call, const ConvTransposeOptions &options) {
  requireRange(call, "output_padding", options.output_padding, 0);
  if (options.padding_end)
    return;
  auto check = [&](int64_t padding, int64_t stride, int64_t dilation) {
    if (padding >= std::max(stride, dilation))
      call.fail("output_padding is below the stride, " + std::to_string(stride) + ", or the dilation, " +
                std::to_string(dilation) + ", not " + std::to_string(padding) +
                "; any number is valid with padding_end");
  };
  check(options.output_padding.h, options.stride.h, options.dilation.h);
  check(options.output_padding.w, options.stride.w, options.dilation.w);
}

Tensor conv_transpose2d(Arg x, const Tensor &weight, const Tensor &bias, ConvTransposeOptions options) {
  Call call("conv_transpose2d", Call::present({x.tensor, weight, bias}), x.where);
  requireImages(call, x.tensor);
  call.requireSameDType(x.tensor, weight);
  call.requireRank("weight", weight, 4);
  requireRange(call, "stride", options.stride, 1);
  requireRange(call, "dilation", options.dilation, 1);
  Padding padding = paddingOf(call, options.padding, options.padding_end);
  requireOutputPadding(call, options);
  ArrayRef<int64_t> w = Call::shape(weight), image = Call::shape(x.tensor);
  if (image[1] != w[0])
    call.fail("input channels differ: " + call.print(image[1]) + " and " + call.print(w[0]));
  if (options.groups <= 0 || w[0] % options.groups != 0)
    call.fail(std::to_string(options.groups) + " groups do not divide " + call.print(w[0]) + " input channels");
  TransposedSize height = transposedSize(call, image[2], w[2], options.stride.h, padding.begin.h, padding.end.h,
                                         options.output_padding.h, options.dilation.h),
                 width = transposedSize(call, image[3], w[3], options.stride.w, padding.begin.w, padding.end.w,
                                        options.output_padding.w, options.dilation.w);
  Tensor y = call.emit<ir::Conv2dInputGradOp>(
      {x.tensor, weight}, {pair(call, "size", {height.size, width.size}), pair(call, "stride", options.stride),
                           sides(call, {padding.begin, {height.after, width.after}}),
                           pair(call, "dilation", options.dilation), call.integer("groups", options.groups)});
  if (height.rest > 0 || width.rest > 0)
    y = pad({y, x.where}, {0, width.rest, 0, height.rest});
  return call.plusBias(y, bias, 1);
}

//===- pools ------------------------------------------------------------------------------------------------------===//

/// The stride of a pool: its kernel's size unless given.
static Size2 strideOf(const Call &call, Size2 stride, Size2 kernel) {
  requireRange(call, "kernel_size", kernel, 1);
  requireRange(call, "stride", stride, 0);
  return {stride.h == 0 ? kernel.h : stride.h, stride.w == 0 ? kernel.w : stride.w};
}

/// The padding of a pool whose windows are at distances of `stride`; with `ceil`, a window may exceed the end by less
/// than the stride. Throws if the windows do not fit. PyTorch's limit of padding holds where PyTorch has the call.
static Padding poolPadding(const Call &call, const Tensor &x, Size2 kernel, Size2 stride, Size2 begin,
                           const std::optional<Size2> &end, Size2 dilation, bool ceil) {
  Padding padding = paddingOf(call, begin, end);
  requireRange(call, "dilation", dilation, 1);
  if (!end && (2 * begin.h > kernel.h || 2 * begin.w > kernel.w))
    call.fail("padding is at most half the kernel's size");
  if (std::max(padding.begin.h, padding.end.h) > dilation.h * (kernel.h - 1) ||
      std::max(padding.begin.w, padding.end.w) > dilation.w * (kernel.w - 1))
    call.fail("padding is less than the dilated kernel's size");
  requireFit(call, x, kernel, padding, dilation, ceil ? Size2(stride.h - 1, stride.w - 1) : Size2(0));
  return padding;
}

Tensor max_pool2d(Arg x, Size2 kernel_size, MaxPoolOptions options) {
  Call call("max_pool2d", x);
  requireImages(call, x.tensor);
  Size2 stride = strideOf(call, options.stride, kernel_size);
  Padding padding = poolPadding(call, x.tensor, kernel_size, stride, options.padding, options.padding_end,
                                options.dilation, options.ceil_mode);
  SmallVector<NamedAttribute> attributes{pair(call, "kernel", kernel_size), pair(call, "stride", stride),
                                         sides(call, padding), pair(call, "dilation", options.dilation)};
  if (options.ceil_mode)
    attributes.push_back(call.unit("ceil_mode"));
  return call.emit<ir::MaxPool2dOp>({x.tensor}, attributes);
}

Tensor avg_pool2d(Arg x, Size2 kernel_size, AvgPoolOptions options) {
  Call call("avg_pool2d", x);
  requireImages(call, x.tensor);
  Size2 stride = strideOf(call, options.stride, kernel_size);
  Padding padding =
      poolPadding(call, x.tensor, kernel_size, stride, options.padding, options.padding_end, 1, options.ceil_mode);
  SmallVector<NamedAttribute> attributes{pair(call, "kernel", kernel_size), pair(call, "stride", stride),
                                         sides(call, padding)};
  if (options.ceil_mode)
    attributes.push_back(call.unit("ceil_mode"));
  if (options.count_include_pad)
    attributes.push_back(call.unit("count_include_pad"));
  return call.emit<ir::AvgPool2dOp>({x.tensor}, attributes);
}

//===- the inverse of a pool --------------------------------------------------------------------------------------===//

// [N, C, H, W] -> [N, C, H, 1, W, 1] -> [N, C, H, s, W, s] -> [N, C, H * s, W * s]
Tensor interpolate(Arg x, Size2 scale_factor) {
  Call call("interpolate", x);
  requireImages(call, x.tensor);
  requireRange(call, "scale_factor", scale_factor, 1);
  ArrayRef<int64_t> image = Call::shape(x.tensor);
  int64_t height, width;
  if (__builtin_mul_overflow(image[2], scale_factor.h, &height) ||
      __builtin_mul_overflow(image[3], scale_factor.w, &width))
    call.fail("the image becomes too large");
  Tensor repeated =
      call.expand(x.tensor, {0, 1, 2, 4}, {image[0], image[1], image[2], scale_factor.h, image[3], scale_factor.w});
  return call.reshape(repeated, {image[0], image[1], height, width});
}

} // namespace sluice
