// Resize and Upsample.
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Casting.h"
#include "frontend/onnx/operators/Resizing.h"
#include "frontend/onnx/operators/Rows.h"

#include <algorithm>
#include <cmath>

namespace sluice::onnx {

//===- one dimension ----------------------------------------------------------------------------------------------===//

/// A vector that broadcasts along a dimension of tensors of this rank.
static Tensor alongAxis(const Tensor &vector, std::int64_t axis, std::int64_t rank) {
  std::vector<Dim> shape(std::size_t(rank - axis), Dim(1));
  shape[0] = vector.size(-1);
  if (vector.dim() == 2)
    shape.insert(shape.begin(), vector.size(0));
  return vector.reshape(Shape(shape));
}

/// The sum of the weighted taps. Elements of weight 0 are not read, so that an infinity or NaN does not spread.
static Tensor weighted(Graph &graph, const Tensor &x, const ResizedDim &dim, const AxisTaps &taps) {
  Shape shape({taps.count, dim.to});
  Tensor read = index_select(x, dim.axis, graph.constant(taps.index, shape));
  Tensor weight = alongAxis(graph.constant(taps.weight, shape).to(x.dtype()), dim.axis, x.dim());
  Tensor parts = read * weight;
  if (std::ranges::find(taps.weight, 0.0) != taps.weight.end())
    parts = where(weight != 0.0, parts, 0.0);
  return parts.sum(dim.axis);
}

/// The elements at the indices. Slices and repetitions need no indices.
static Tensor selected(Graph &graph, const Tensor &x, const ResizedDim &dim, const AxisTaps &taps) {
  const std::vector<std::int32_t> &index = taps.index;
  std::int64_t step = dim.to > 1 ? index[1] - index[0] : 1, times = dim.to / dim.from;
  bool isSlice = step > 0, isRepeated = dim.to % dim.from == 0;
  for (std::int64_t i = 0; i < dim.to; ++i) {
    isSlice &= index[std::size_t(i)] == index[0] + i * step;
    isRepeated &= times > 0 && index[std::size_t(i)] == i / times;
  }
  if (isSlice)
    return x.slice(dim.axis, index[0], index[0] + (dim.to - 1) * step + 1, step);
  if (!isRepeated)
    return index_select(x, dim.axis, graph.constant(index, std::int64_t(index.size())));
  Shape before = x.shape();
  std::vector<Dim> shape(before.begin(), before.end());
  shape.insert(shape.begin() + dim.axis + 1, Dim(times));
  Tensor repeated = x.unsqueeze(dim.axis + 1).expand(Shape(shape));
  shape.erase(shape.begin() + dim.axis + 1);
  shape[std::size_t(dim.axis)] = Dim(dim.to);
  return repeated.reshape(Shape(shape));
}

static Tensor resizedAlong(Graph &graph, const Tensor &x, const ResizedDim &dim, const Sampling &sampling) {
  AxisTaps taps = tapsOf(dim, sampling);
  Tensor y = taps.weight.empty() ? selected(graph, x, dim, taps) : weighted(graph, x, dim, taps);
  if (taps.isOutside.empty())
    return y;
  Tensor isOutside = alongAxis(graph.constant(taps.isOutside, std::int64_t(taps.isOutside.size())), dim.axis, x.dim());
  return where(isOutside, sampling.extrapolation, y);
}

/// Whether the dimension is repeated by a whole number.
static bool isRepetition(const ResizedDim &dim, const Sampling &sampling) {
  if (dim.to % dim.from != 0 || sampling.mode != "nearest")
    return false;
  AxisTaps taps = tapsOf(dim, sampling);
  for (std::int64_t i = 0; i < dim.to; ++i)
    if (taps.index[std::size_t(i)] != i / (dim.to / dim.from))
      return false;
  return taps.isOutside.empty();
}

/// Resizes each dimension. f16 and bf16 are computed in f32.
static Tensor resizedAll(Graph &graph, const Tensor &x, const std::vector<ResizedDim> &dims, const Sampling &sampling) {
  bool isImage = x.dim() == 4 && dims.size() == 2 && dims[0].axis == 2 && dims[1].axis == 3 && is_float(x.dtype());
  if (isImage && isRepetition(dims[0], sampling) && isRepetition(dims[1], sampling))
    return interpolate(x, {dims[0].to / dims[0].from, dims[1].to / dims[1].from});
  bool isNearest = sampling.mode == "nearest";
  DType wide = isNearest || x.dtype() == f64 ? x.dtype() : f32;
  Tensor y = x.to(wide);
  for (const ResizedDim &dim : dims)
    y = resizedAlong(graph, y, dim, sampling);
  return y;
}

/// Resizes a batch that is merged with another dimension.
static Tensor resizedMerged(Graph &graph, const Tensor &x, std::vector<ResizedDim> dims, const Sampling &sampling) {
  std::vector<Dim> rest{factorOfRows(x)}, shape{x.size(0)};
  for (std::int64_t i = 1; i < x.dim(); ++i)
    rest.push_back(x.size(i));
  for (ResizedDim &dim : dims)
    ++dim.axis;
  Tensor y = resizedAll(graph, withRows(x, rest), dims, sampling);
  for (std::int64_t i = 2; i < y.dim(); ++i)
    shape.push_back(y.size(i));
  return y.reshape(Shape(shape));
}

//===- sizes ------------------------------------------------------------------------------------------------------===//

/// The dimensions that change, from scales for some dimensions.
static std::vector<ResizedDim> dimsOfScales(const Node &node, const std::vector<double> &scales,
                                            const std::vector<std::int64_t> &axes) {
  std::vector<Size> shape = node.shape(0);
  if (scales.size() != axes.size())
    Node::fail(std::to_string(scales.size()) + " scales for " + std::to_string(axes.size()) + " dimensions");
  std::vector<ResizedDim> dims;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Size &size = shape[std::size_t(axes[i])];
    if (!size.isKnown() && scales[i] != 1)
      Node::fail("the batch cannot be resized");
    if (!size.isKnown())
      continue;
    double to = std::floor(double(float(size.constant) * float(scales[i])));
    if (!(to >= 1 && to <= double(std::int64_t(1) << 40)))
      Node::fail("a scale of " + std::to_string(scales[i]) + " is not supported");
    dims.push_back({axes[i], size.constant, std::int64_t(to), scales[i], /*isRounded=*/true});
  }
  return dims;
}

/// Sizes that keep the ratio of the dimensions: the least or the greatest scale holds for all.
static void keepRatio(std::vector<ResizedDim> &dims, bool isLeast) {
  auto byScale = [](const ResizedDim &a, const ResizedDim &b) { return a.scale < b.scale; };
  double scale =
      isLeast ? std::ranges::min_element(dims, byScale)->scale : std::ranges::max_element(dims, byScale)->scale;
  for (ResizedDim &dim : dims) {
    dim.scale = scale;
    dim.isRounded = true;
    dim.to = std::int64_t(scale * double(dim.from) + 0.5);
    if (dim.to < 1)
      Node::fail("nothing is left of a dimension");
  }
}

static std::vector<ResizedDim> dimsOfSizes(const Node &node, const std::vector<Size> &sizes,
                                           const std::vector<std::int64_t> &axes) {
  std::vector<Size> shape = node.shape(0);
  if (sizes.size() != axes.size())
    Node::fail(std::to_string(sizes.size()) + " sizes for " + std::to_string(axes.size()) + " dimensions");
  std::vector<ResizedDim> dims;
  std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Size &from = shape[std::size_t(axes[i])];
    if (from == sizes[i] && !from.isKnown() && policy == "stretch")
      continue;
    if (!from.isKnown() || !sizes[i].isKnown())
      Node::fail("the batch cannot be resized");
    if (sizes[i].constant < 1 || sizes[i].constant > std::int64_t(1) << 40)
      Node::fail("a size of " + std::to_string(sizes[i].constant) + " is not supported");
    dims.push_back({axes[i], from.constant, sizes[i].constant, double(sizes[i].constant) / double(from.constant)});
  }
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    Node::fail("keep_aspect_ratio_policy '" + policy + "' is not supported");
  if (policy != "stretch" && !dims.empty())
    keepRatio(dims, policy == "not_larger");
  return dims;
}

/// The regions for tf_crop_and_resize: the begins of all dimensions, and then their ends.
static void setRegions(std::vector<ResizedDim> &dims, const std::vector<double> &region,
                       const std::vector<std::int64_t> &axes) {
  if (region.size() != 2 * axes.size())
    Node::fail("roi has " + std::to_string(region.size()) + " numbers for " + std::to_string(axes.size()) +
               " dimensions");
  for (ResizedDim &dim : dims) {
    auto i = std::size_t(std::ranges::find(axes, dim.axis) - axes.begin());
    dim.begin = region[i];
    dim.end = region[i + axes.size()];
    if (!std::isfinite(dim.begin) || !std::isfinite(dim.end))
      Node::fail("roi is not finite");
  }
}

/// All dimensions, or those of the attribute axes.
static std::vector<std::int64_t> resizedAxes(const Node &node) {
  std::vector<std::int64_t> axes = node.integers("axes");
  for (std::int64_t &axis : axes)
    axis = Node::axisOf(axis, node.rank(0));
  if (axes.empty())
    for (std::int64_t axis = 0; axis < node.rank(0); ++axis)
      axes.push_back(axis);
  for (std::int64_t axis : axes)
    if (std::ranges::count(axes, axis) > 1)
      Node::fail("axes names a dimension twice");
  return axes;
}

//===- operators --------------------------------------------------------------------------------------------------===//

static void setResized(Node &node, std::vector<ResizedDim> dims, const Sampling &sampling) {
  bool isCropped = sampling.coordinates == "tf_crop_and_resize";
  std::erase_if(dims, [&](const ResizedDim &dim) {
    return dim.from == dim.to && dim.scale == 1 && (!isCropped || (dim.begin == 0 && dim.end == 1));
  });
  std::ranges::sort(dims, {}, &ResizedDim::axis);
  if (dims.empty())
    return node.set(0, node.inputValue(0));
  Graph graph = node.graph();
  Tensor x = node.tensor(0),
         y = factorOfRows(x) > 1 ? resizedMerged(graph, x, dims, sampling) : resizedAll(graph, x, dims, sampling);
  node.set(0, castTo(y, is_float(y.dtype()) && !is_float(x.dtype()) ? ElementType::f32 : node.type(0), node.type(0)),
           node.type(0));
}

static Sampling samplingOf(const Node &node) {
  if (node.opset() < 11)
    return {.mode = node.text("mode", "nearest"), .rounding = "outward"};
  return {.mode = node.text("mode", "nearest"),
          .coordinates = node.text("coordinate_transformation_mode", "half_pixel"),
          .rounding = node.text("nearest_mode", "round_prefer_floor"),
          .cubicCoefficient = node.real("cubic_coeff_a", -0.75),
          .excludesOutside = node.integer("exclude_outside", 0) != 0,
          .antialiases = node.integer("antialias", 0) != 0,
          .extrapolation = node.real("extrapolation_value", 0.0)};
}

/// Scales, or sizes since version 11. An input without elements is absent.
void resizeOf(Node &node) {
  std::size_t atScales = node.opset() < 11 ? 1 : 2;
  std::vector<std::int64_t> axes = resizedAxes(node);
  Sampling sampling = samplingOf(node);
  if (sampling.antialiases && sampling.mode == "nearest")
    Node::fail("antialias with mode 'nearest' is not supported");
  std::vector<ResizedDim> dims;
  if (node.has(atScales) && node.shape(atScales) != std::vector{Size{0, 0}}) {
    dims = dimsOfScales(node, node.reals(atScales, "the scales"), axes);
  } else {
    std::optional<std::vector<Size>> sizes = node.sizes(3);
    if (!sizes)
      Node::fail("scales or sizes must be known when the model is imported");
    dims = dimsOfSizes(node, *sizes, axes);
  }
  if (sampling.coordinates == "tf_crop_and_resize")
    setRegions(dims, node.reals(1, "roi"), axes);
  setResized(node, std::move(dims), sampling);
}

/// Scales are an input since version 9, and two attributes in version 1.
void upsample(Node &node) {
  std::vector<double> scales = node.reals("scales");
  if (node.opset() < 7)
    scales = {1, 1, node.real("height_scale", 1.0), node.real("width_scale", 1.0)};
  if (node.opset() >= 9)
    scales = node.reals(1, "the scales");
  std::string mode = node.text("mode", "nearest");
  setResized(node, dimsOfScales(node, scales, resizedAxes(node)), {.mode = mode == "bilinear" ? "linear" : mode});
}

} // namespace sluice::onnx
