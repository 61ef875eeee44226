// Conv and ConvTranspose. Lines are images of height 1. Volumes are images whose channels are those of several slices.
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Rows.h"
#include "frontend/onnx/operators/Windows.h"
#include "sluice/formulas.h"

#include <algorithm>
#include <functional>

namespace sluice::onnx {

/// The kernel's sizes, from the shape of the weight.
static Dims kernelOf(const Node &node, const std::vector<Size> &weight) {
  Dims kernel;
  for (std::size_t i = 2; i < weight.size(); ++i)
    kernel.push_back(weight[i].constant);
  if (Dims written = node.integers("kernel_shape"); !written.empty() && written != kernel)
    Node::fail("kernel_shape differs from the weight");
  return kernel;
}

/// x with a dimension of size 1 before its last.
static Tensor asImage(const Tensor &x) { return x.unsqueeze(-2); }

static ConvOptions optionsOf(const WindowDim &h, const WindowDim &w, std::int64_t groups) {
  return {.stride = {h.stride, w.stride},
          .padding = {h.before, w.before},
          .dilation = {h.dilation, w.dilation},
          .groups = groups,
          .padding_end = Size2(h.after, w.after)};
}

static Tensor withBias(const Tensor &y, const Tensor &bias) {
  if (!bool(bias))
    return y;
  std::vector<Dim> shape(std::size_t(y.dim() - 1), Dim(1));
  shape[0] = bias.size(0);
  return y + bias.reshape(Shape(shape));
}

using ConvolutionOfImages = std::function<Tensor(const Tensor &x, const Tensor &weight, std::int64_t groups)>;

/// More images in a row are refused.
static constexpr std::int64_t kMostImages = 4096;

/// Convolves each image of x [N, T, C, H, W]: [N, T, O, H', W']. With a batch, which a convolution takes alone, each
/// image is convolved apart, or the images of a row are groups of channels if the groups are single channels.
static Tensor convolvedImages(const Tensor &x, const Tensor &weight, std::int64_t groups,
                              const ConvolutionOfImages &convolve) {
  Dim rows = x.size(0), height = x.size(3), width = x.size(4);
  std::int64_t images = x.size(1).size, channels = x.size(2).size;
  if (images > kMostImages)
    Node::fail("a convolution of " + std::to_string(images) + " images in a row is not supported");
  if (rows.symbolic() && groups != channels) {
    std::vector<Tensor> results;
    for (std::int64_t image = 0; image < images; ++image)
      results.push_back(convolve(x.select(1, image), weight, groups));
    return stack(results, 1);
  }
  Tensor y = rows.symbolic() ? convolve(x.reshape({rows, images * channels, height, width}),
                                        repeat(weight, {images, 1, 1, 1}), groups * images)
                             : convolve(x.reshape({rows * images, channels, height, width}), weight, groups);
  std::int64_t results = rows.symbolic() ? y.size(1).size / images : y.size(1).size;
  return y.reshape({rows, images, results, y.size(2), y.size(3)});
}

/// conv2d with all options but the groups, or conv_transpose2d.
template <class Options>
static ConvolutionOfImages convolutionWith(Tensor (*convolve)(Arg, const Tensor &, const Tensor &, Options),
                                           const Options &options) {
  return [=](const Tensor &x, const Tensor &weight, std::int64_t groups) {
    Options inGroups = options;
    inGroups.groups = groups;
    return convolve(x, weight, {}, inGroups);
  };
}

/// Convolves images of a batch that is merged with another dimension: those of a row.
static Tensor convolvedMerged(const Tensor &x, const Tensor &weight, std::int64_t groups,
                              const ConvolutionOfImages &convolve) {
  Tensor images = withRows(x, {factorOfRows(x), x.size(1), x.size(2), x.size(3)});
  Tensor y = convolvedImages(images, weight, groups, convolve);
  return y.reshape({x.size(0), y.size(2), y.size(3), y.size(4)});
}

template <class Options>
static Tensor convolved2d(Tensor (*convolve)(Arg, const Tensor &, const Tensor &, Options), const Tensor &x,
                          const Tensor &weight, const Tensor &bias, const Options &options) {
  if (factorOfRows(x) > 1)
    return withBias(convolvedMerged(x, weight, options.groups, convolutionWith(convolve, options)), bias);
  return convolve(x, weight, bias, options);
}

/// More slices in a window are refused.
static constexpr std::int64_t kMostSlices = 64;

/// The slices of x [N, C, D, H, W] that the windows of dimension 2 hold, as channels: [N, D', C * taps, H, W].
static Tensor slicesOf(Tensor x, const WindowDim &window) {
  if (factorOfRows(x) > 1)
    Node::fail("a convolution of volumes, with a batch that is merged with another dimension, is not supported");
  if (window.kernel > kMostSlices)
    Node::fail("a window of " + std::to_string(window.kernel) + " slices is not supported");
  if (window.before > 0 || window.after > 0)
    x = pad(x, {0, 0, 0, 0, window.before, window.after});
  std::int64_t places = window.positions(), channels = x.size(1).size;
  std::vector<Tensor> taps;
  for (std::int64_t tap = 0; tap < window.kernel; ++tap) {
    std::int64_t begin = tap * window.dilation;
    taps.push_back(x.slice(2, begin, begin + (places - 1) * window.stride + 1, window.stride));
  }
  return stack(taps, 2)
      .permute({0, 3, 1, 2, 4, 5})
      .reshape({x.size(0), places, channels * window.kernel, x.size(3), x.size(4)});
}

static Tensor convolved3d(const Tensor &x, const Tensor &weight, const Tensor &bias,
                          const std::vector<WindowDim> &windows, std::int64_t groups) {
  Tensor slices = slicesOf(x, windows[0]);
  ConvOptions options = optionsOf(windows[1], windows[2], groups);
  Tensor y = convolvedImages(slices, weight.flatten(1, 2), groups, convolutionWith(conv2d, options));
  return withBias(y.permute({0, 2, 1, 3, 4}), bias);
}

Tensor convolved(const Node &node, const Tensor &x, const Tensor &weight, const Tensor &bias) {
  std::vector<WindowDim> windows = windowsOf(node, kernelOf(node, shapeOf(weight)));
  std::int64_t groups = node.integer("group", 1);
  for (const WindowDim &window : windows)
    window.positions();
  if (groups < 1 || x.size(1).size != groups * weight.size(1).size)
    Node::fail("the weight has " + std::to_string(weight.size(1).size) + " channels for " + x.size(1).str() + " in " +
               std::to_string(groups) + " groups");
  if (windows.size() == 1) {
    ConvOptions options = optionsOf(WindowDim(), windows[0], groups);
    return convolved2d(conv2d, asImage(x), asImage(weight), bias, options).squeeze(2);
  }
  if (windows.size() == 2)
    return convolved2d(conv2d, x, weight, bias, optionsOf(windows[0], windows[1], groups));
  if (windows.size() == 3)
    return convolved3d(x, weight, bias, windows, groups);
  Node::fail("a convolution in " + std::to_string(windows.size()) + " dimensions is not supported");
}

void convolution(Node &node) {
  node.set(0, convolved(node, node.tensor(0), node.weight(1), node.has(2) ? node.weight(2) : Tensor()));
}

//===- ConvTranspose ----------------------------------------------------------------------------------------------===//

/// One dimension of a transposed convolution's result. Padding crops it.
struct TransposedDim {
  WindowDim window;
  std::int64_t outputPadding = 0;
};

/// Chooses the padding for a size of the result. A size beyond that of the windows appends elements.
static void cropTo(TransposedDim &dim, std::int64_t size, bool largerAtEnd) {
  WindowDim &window = dim.window;
  std::int64_t total = window.stride * (window.size - 1) + dim.outputPadding + window.extent() - size;
  window.before = std::max<std::int64_t>(0, largerAtEnd ? total / 2 : total - total / 2);
  window.after = std::max<std::int64_t>(0, total - window.before);
  dim.outputPadding += std::max<std::int64_t>(0, -total);
}

static std::vector<TransposedDim> transposedDims(const Node &node) {
  std::vector<WindowDim> windows = windowsOf(node, kernelOf(node, node.shape(1)));
  std::size_t count = windows.size();
  Dims outputPadding = windowAttribute(node, "output_padding", count, 0, 0), sizes = node.integers("output_shape");
  std::string autoPad = node.text("auto_pad", "NOTSET");
  if (sizes.size() == count + 2)
    sizes.erase(sizes.begin(), sizes.begin() + 2);
  if (!sizes.empty() && sizes.size() != count)
    Node::fail("output_shape has " + std::to_string(sizes.size()) + " numbers");
  std::vector<TransposedDim> dims;
  for (std::size_t i = 0; i < count; ++i) {
    TransposedDim dim{windows[i], outputPadding[i]};
    if (!sizes.empty() || autoPad.starts_with("SAME"))
      cropTo(dim, sizes.empty() ? dim.window.size * dim.window.stride : sizes[i], autoPad == "SAME_UPPER");
    dims.push_back(dim);
  }
  return dims;
}

static ConvTransposeOptions optionsOf(const TransposedDim &h, const TransposedDim &w, std::int64_t groups) {
  return {.stride = {h.window.stride, w.window.stride},
          .padding = {h.window.before, w.window.before},
          .output_padding = {h.outputPadding, w.outputPadding},
          .groups = groups,
          .dilation = {h.window.dilation, w.window.dilation},
          .padding_end = Size2(h.window.after, w.window.after)};
}

/// The windows of a convolution of x, with zeros between its slices, by the reversed kernel.
static Tensor transposed3d(const Tensor &x, const Tensor &weight, const Tensor &bias,
                           const std::vector<TransposedDim> &dims, std::int64_t groups) {
  const WindowDim &window = dims[0].window;
  std::int64_t gap = window.stride - 1, last = window.extent() - 1;
  Tensor apart = pad(x.unsqueeze(3), {0, 0, 0, 0, 0, gap}).flatten(2, 3);
  apart = pad(apart, {0, 0, 0, 0, last - window.before, last - window.after - gap + dims[0].outputPadding});
  WindowDim moved{apart.size(2).size, window.kernel, 1, window.dilation};
  ConvTransposeOptions options = optionsOf(dims[1], dims[2], groups);
  Tensor flat = flip(weight, 2).transpose(1, 2).flatten(0, 1);
  Tensor y = convolvedImages(slicesOf(apart, moved), flat, groups, convolutionWith(conv_transpose2d, options));
  return withBias(y.permute({0, 2, 1, 3, 4}), bias);
}

void transposedConvolution(Node &node) {
  std::vector<TransposedDim> dims = transposedDims(node);
  std::int64_t groups = node.integer("group", 1);
  Tensor x = node.tensor(0), weight = node.weight(1), bias = node.has(2) ? node.weight(2) : Tensor();
  if (groups < 1 || x.size(1).size != weight.size(0).size || x.size(1).size % groups != 0)
    Node::fail("the weight has " + weight.size(0).str() + " channels for " + x.size(1).str() + " in " +
               std::to_string(groups) + " groups");
  if (dims.size() == 1) {
    ConvTransposeOptions options = optionsOf(TransposedDim(), dims[0], groups);
    return node.set(0, convolved2d(conv_transpose2d, asImage(x), asImage(weight), bias, options).squeeze(2));
  }
  if (dims.size() == 2)
    return node.set(0, convolved2d(conv_transpose2d, x, weight, bias, optionsOf(dims[0], dims[1], groups)));
  if (dims.size() == 3)
    return node.set(0, transposed3d(x, weight, bias, dims, groups));
  Node::fail("a transposed convolution in " + std::to_string(dims.size()) + " dimensions is not supported");
}

} // namespace sluice::onnx
