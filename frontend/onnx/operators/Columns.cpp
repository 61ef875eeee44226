// Col2Im, MaxUnpool, CenterCropPad and CausalConvWithState.
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Windows.h"
#include "sluice/formulas.h"

#include <algorithm>

namespace sluice::onnx {

/// The padding of a dimension `axis`, before and after it; negative numbers crop.
static Tensor paddedAlong(const Tensor &x, std::int64_t axis, std::int64_t before, std::int64_t after) {
  if (before == 0 && after == 0)
    return x;
  std::vector<std::int64_t> pads(2 * std::size_t(x.dim() - axis), 0);
  pads[pads.size() - 2] = before;
  pads.back() = after;
  return pad(x, pads);
}

//===- Col2Im -----------------------------------------------------------------------------------------------------===//

/// Places a tap of all windows in the image: elements along `axis` at distances of the stride.
static Tensor spreadAlong(const Tensor &x, std::int64_t axis, const WindowDim &window, std::int64_t tap) {
  std::int64_t places = x.size(axis).size, begin = tap * window.dilation - window.before;
  Tensor apart = window.stride == 1
                     ? x
                     : paddedAlong(x.unsqueeze(axis + 1), axis + 1, 0, window.stride - 1).flatten(axis, axis + 1);
  return paddedAlong(apart, axis, begin, window.size - begin - places * window.stride);
}

/// The windows of an image whose sizes are an input.
static std::vector<WindowDim> columnWindows(const Node &node) {
  std::vector<std::int64_t> sizes = node.integers(1, "image_shape"), kernel = node.integers(2, "block_shape");
  std::size_t count = sizes.size();
  Dims strides = windowAttribute(node, "strides", count, 1, 1),
       dilations = windowAttribute(node, "dilations", count, 1, 1),
       pads = windowAttribute(node, "pads", 2 * count, 0, 0);
  if (count == 0 || kernel.size() != count)
    Node::fail("image_shape and block_shape differ in size");
  std::vector<WindowDim> windows;
  for (std::size_t i = 0; i < count; ++i) {
    constexpr std::int64_t most = std::int64_t(1) << 31;
    if (sizes[i] < 1 || sizes[i] > most || kernel[i] < 1 || kernel[i] > most)
      Node::fail("an image of " + std::to_string(sizes[i]) + " with blocks of " + std::to_string(kernel[i]));
    windows.push_back({sizes[i], kernel[i], strides[i], dilations[i], pads[i], pads[i + count]});
  }
  return windows;
}

/// More taps are refused: each one is padded to the size of the image.
static constexpr std::int64_t kMostSummed = 1024;

/// x [N, C * taps, windows]: the sum of the windows, each at its place in the image.
void columnsToImage(Node &node) {
  std::vector<WindowDim> windows = columnWindows(node);
  Tensor x = node.tensor(0);
  Dims kernel, places;
  for (const WindowDim &window : windows) {
    kernel.push_back(window.kernel);
    places.push_back(window.positions());
  }
  std::int64_t taps = countOf(kernel);
  if (x.dim() != 3 || x.size(1).size % taps != 0 || x.size(2).size != countOf(places))
    Node::fail("the input " + x.shape().str() + " has not " + std::to_string(countOf(places)) + " blocks of " +
               std::to_string(taps) + " elements");
  if (taps > kMostSummed)
    Node::fail("blocks of " + std::to_string(taps) + " elements are not supported");
  std::vector<Dim> shape{x.size(0), x.size(1).size / taps, taps};
  shape.insert(shape.end(), places.begin(), places.end());
  Tensor columns = x.reshape(Shape(shape)), sum;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    Tensor part = columns.select(2, tap);
    std::int64_t rest = tap;
    for (std::size_t i = windows.size(); i-- > 0; rest /= kernel[i])
      part = spreadAlong(part, std::int64_t(i) + 2, windows[i], rest % kernel[i]);
    sum = bool(sum) ? sum + part : part;
  }
  node.set(0, sum, node.type(0));
}

//===- MaxUnpool --------------------------------------------------------------------------------------------------===//

/// The sizes of an image of which a pool has x.
static Dims unpooledSizes(const Node &node, const Tensor &x) {
  auto count = std::size_t(std::max<std::int64_t>(x.dim() - 2, 0));
  Dims kernel = windowAttribute(node, "kernel_shape", count, 1, 1),
       strides = windowAttribute(node, "strides", count, 1, 1), pads = windowAttribute(node, "pads", 2 * count, 0, 0),
       sizes;
  for (std::size_t i = 0; i < count; ++i) {
    sizes.push_back((x.size(std::int64_t(i) + 2).size - 1) * strides[i] - pads[i] - pads[i + count] + kernel[i]);
    if (sizes.back() < 1)
      Node::fail("nothing is left of the result");
  }
  return sizes;
}

/// x [N, C, ...] with zeros after it in the dimensions from 2 on.
static Tensor paddedAfter(const Node &node, Tensor x) {
  std::vector<std::int64_t> sizes = node.integers(2, "output_shape");
  if (std::int64_t(sizes.size()) != x.dim())
    Node::fail("output_shape has " + std::to_string(sizes.size()) + " numbers");
  for (std::int64_t axis = 2; axis < x.dim(); ++axis)
    x = paddedAlong(x, axis, 0, sizes[std::size_t(axis)] - x.size(axis).size);
  return x;
}

/// Elements at the indices that MaxPool returns, which count all rows; zeros elsewhere. Windows that overlap have equal
/// elements at one index.
void maxUnpool(Node &node) {
  Tensor x = node.tensor(0), index = node.tensor(1);
  Dims sizes = unpooledSizes(node, x);
  if (!(x.shape() == index.shape()) || sizes.empty())
    Node::fail("the indices " + index.shape().str() + " do not fit " + x.shape().str());
  std::vector<Dim> shape{x.size(0), x.size(1)};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  std::int64_t elements = x.size(1).size * countOf(sizes);
  Tensor flat = x.flatten(1, -1), at = remainder(index.flatten(1, -1), double(elements));
  Tensor zeros = full_like(flat.slice(1, 0, 1), 0).expand({x.size(0), elements});
  Tensor sum = scatter_add(zeros, 1, at, flat), count = scatter_add(zeros, 1, at, full_like(flat, 1));
  Tensor y = where(count > 1.0, sum / count, sum).reshape(Shape(shape));
  node.set(0, node.has(2) ? paddedAfter(node, y) : y);
}

//===- CenterCropPad ----------------------------------------------------------------------------------------------===//

/// An odd difference leaves one element more after the center.
void centerCropPad(Node &node) {
  std::optional<std::vector<Size>> sizes = node.sizes(1);
  if (!sizes)
    Node::fail("the shape must be known when the model is imported");
  std::vector<std::int64_t> axes = node.integers("axes");
  if (axes.empty())
    for (std::int64_t axis = 0; axis < node.rank(0); ++axis)
      axes.push_back(axis);
  if (axes.size() != sizes->size())
    Node::fail(std::to_string(sizes->size()) + " sizes for " + std::to_string(axes.size()) + " dimensions");
  std::vector<Size> shape = node.shape(0);
  Tensor y = node.tensor(0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    std::int64_t axis = Node::axisOf(axes[i], node.rank(0));
    const Size &from = shape[std::size_t(axis)], &to = (*sizes)[i];
    if (from == to)
      continue;
    constexpr std::int64_t most = std::int64_t(1) << 40;
    if (!from.isKnown() || !to.isKnown() || to.constant < 1 || to.constant > most)
      Node::fail("a size of " + textOf(to) + " for " + textOf(from) + " elements is not supported");
    std::int64_t removed = from.constant - to.constant, before = removed > 0 ? removed / 2 : -(-removed / 2);
    y = paddedAlong(y, axis, -before, before - removed);
  }
  node.set(0, y, node.type(0));
}

//===- CausalConvWithState ----------------------------------------------------------------------------------------===//

/// A convolution of each channel of x [N, C, L] after its past, or after zeros. The last elements are the next past.
void causalConvolution(Node &node) {
  Tensor x = node.tensor(0), weight = node.weight(1), bias = node.has(2) ? node.weight(2) : Tensor();
  if (x.dim() != 3 || weight.dim() != 3)
    Node::fail("the input or the weight has not 3 dimensions");
  std::int64_t channels = x.size(1).size, past = weight.size(2).size - 1;
  Tensor all = past == 0 ? x : node.has(3) ? cat({node.tensor(3), x}, 2) : paddedAlong(x, 2, past, 0);
  Tensor y = conv1d(all, weight, bias, {.groups = channels});
  std::string activation = node.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    Node::fail("activation '" + activation + "' is not supported");
  node.set(0, activation == "none" ? y : silu(y));
  if (!node.wants(1))
    return;
  if (past > 0)
    return node.set(1, all.slice(2, all.size(2).size - past));
  Dims dims = node.dims(0);
  node.set(1, Known(node.type(0), {dims[0], dims[1], 0}, std::vector<std::byte>()));
}

} // namespace sluice::onnx
