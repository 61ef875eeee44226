// GridSample, AffineGrid and DeformConv.
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Casting.h"
#include "frontend/onnx/operators/Sampler.h"
#include "frontend/onnx/operators/Windows.h"
#include "sluice/ops.h"

#include <algorithm>

namespace sluice::onnx {

/// The sizes of an image, which the batch cannot be.
static Dims imageSizes(const Node &node, std::size_t first) {
  Dims sizes;
  std::vector<Size> shape = node.shape(0);
  for (std::size_t i = first; i < shape.size(); ++i) {
    if (!shape[i].isKnown())
      Node::fail("the batch cannot be a dimension of an image");
    sizes.push_back(shape[i].constant);
  }
  if (sizes.empty())
    Node::fail("the input has no dimension besides channels");
  return sizes;
}

/// A place from -1 to 1 in units of elements.
static Tensor denormalized(const Tensor &place, std::int64_t size, bool alignsCorners) {
  return alignsCorners ? (place + 1.0) / 2.0 * double(size - 1) : ((place + 1.0) * double(size) - 1.0) / 2.0;
}

/// f16 and bf16 are computed in f32, and integers in f32.
static DType sampledAs(DType dtype) { return dtype == f64 ? f64 : f32; }

/// The last dimension of the grid counts dimensions from the last.
void gridSample(Node &node) {
  Dims sizes = imageSizes(node, 2);
  std::int64_t rank = node.rank(0), dims = rank - 2;
  Tensor x = node.tensor(0), grid = node.tensor(1);
  if (grid.dim() != rank || grid.size(-1).size != dims || !(grid.size(0) == x.size(0)))
    Node::fail("the grid " + grid.shape().str() + " does not fit " + x.shape().str());
  Sampler sampler{node.text("mode", "linear"), node.text("padding_mode", "zeros"),
                  node.integer("align_corners", 0) != 0};
  Tensor flat = grid.to(sampledAs(grid.dtype())).flatten(1, -2);
  std::vector<Tensor> places;
  for (std::int64_t i = 0; i < dims; ++i)
    places.push_back(
        denormalized(flat.select(2, dims - 1 - i), sizes[std::size_t(i)], sampler.alignsCorners).unsqueeze(1));
  DType wide = sampledAs(x.dtype());
  Tensor y = sampled(x.to(wide).flatten(2, -1), sizes, places, sampler);
  std::vector<Dim> shape{x.size(0), x.size(1)};
  for (std::int64_t i = 1; i + 1 < rank; ++i)
    shape.push_back(grid.size(i));
  node.set(0, castTo(y.reshape(Shape(shape)), elementTypeOf(wide), node.type(0)), node.type(0));
}

/// Places from -1 to 1 along a dimension: of the centers of the corner elements, or of their edges.
static double normalizedPlace(std::int64_t i, std::int64_t size, bool alignsCorners) {
  if (alignsCorners)
    return size == 1 ? 0 : 2.0 * double(i) / double(size - 1) - 1;
  return (2.0 * double(i) + 1) / double(size) - 1;
}

/// [P, dims + 1]: for each element of an image, its places, the last dimension first, and 1.
static std::vector<double> homogeneousPlaces(const Dims &sizes, bool alignsCorners) {
  static constexpr std::int64_t most = std::int64_t(1) << 24;
  std::int64_t count = countOf(sizes);
  if (count < 1 || count > most)
    Node::fail("a grid of " + std::to_string(count) + " elements is not supported");
  std::vector<double> places;
  for (std::int64_t element = 0; element < count; ++element) {
    std::int64_t rest = element;
    for (std::size_t dim = sizes.size(); dim-- > 0; rest /= sizes[dim])
      places.push_back(normalizedPlace(rest % sizes[dim], sizes[dim], alignsCorners));
    places.push_back(1);
  }
  return places;
}

void affineGrid(Node &node) {
  std::optional<std::vector<Size>> wanted = node.sizes(1);
  Tensor theta = node.tensor(0);
  if (!wanted)
    Node::fail("the size must be known when the model is imported");
  std::int64_t dims = std::int64_t(wanted->size()) - 2;
  if ((dims != 2 && dims != 3) || theta.dim() != 3 || theta.size(1).size != dims || theta.size(2).size != dims + 1)
    Node::fail("a matrix " + theta.shape().str() + " for a grid of " + std::to_string(dims) + " dimensions");
  Dims sizes;
  std::vector<Dim> shape{theta.size(0)};
  for (std::size_t i = 2; i < wanted->size(); ++i) {
    if (!(*wanted)[i].isKnown() || (*wanted)[i].constant < 1)
      Node::fail("the size of the grid is not supported");
    sizes.push_back((*wanted)[i].constant);
    shape.emplace_back(sizes.back());
  }
  shape.emplace_back(dims);
  Graph graph = node.graph();
  std::vector<double> places = homogeneousPlaces(sizes, node.integer("align_corners", 0) != 0);
  Tensor base = graph.constant(places, {countOf(sizes), dims + 1}).to(theta.dtype());
  node.set(0, einsum("nij,pj->npi", theta, base).reshape(Shape(shape)));
}

//===- DeformConv -------------------------------------------------------------------------------------------------===//

/// The places of the elements of all windows along one dimension, [taps, windows], plus their offsets.
static Tensor placesOf(Graph &graph, const Tensor &offset, const std::vector<WindowDim> &windows, std::size_t dim) {
  std::vector<double> places;
  for (std::int64_t tap = 0; tap < windows[0].kernel * windows[1].kernel; ++tap)
    for (std::int64_t place = 0; place < windows[0].positions() * windows[1].positions(); ++place) {
      const WindowDim &window = windows[dim];
      std::int64_t inner = dim == 0 ? windows[1].kernel : 1, innerPlace = dim == 0 ? windows[1].positions() : 1;
      places.push_back(double((place / innerPlace) % window.positions() * window.stride - window.before +
                              (tap / inner) % window.kernel * window.dilation));
    }
  std::int64_t taps = windows[0].kernel * windows[1].kernel;
  Tensor base = graph.constant(places, {taps, std::int64_t(places.size()) / taps}).to(offset.dtype());
  return offset.select(3, std::int64_t(dim)) + base;
}

/// The elements of all windows, [N, C, taps, windows]. Offsets are [N, groups * taps * 2, H', W'].
static Tensor deformedWindows(Node &node, const Tensor &x, const std::vector<WindowDim> &windows) {
  std::int64_t groups = node.integer("offset_group", 1), channels = x.size(1).size,
               taps = windows[0].kernel * windows[1].kernel, height = windows[0].positions(),
               width = windows[1].positions();
  if (groups < 1 || channels % groups != 0 || taps > 4096 || height * width > std::int64_t(1) << 20)
    Node::fail("offset_group " + std::to_string(groups) + " or the size is not supported");
  Graph graph = node.graph();
  Dim rows = x.size(0);
  Tensor offset = node.tensor(2).reshape({rows, groups, taps, 2, height * width});
  std::vector<Tensor> places;
  for (std::size_t dim : {0, 1})
    places.push_back(placesOf(graph, offset, windows, dim).reshape({rows, groups, 1, taps * height * width}));
  Tensor image = x.reshape({rows, groups, channels / groups, windows[0].size * windows[1].size});
  Tensor y = sampled(image, {windows[0].size, windows[1].size}, places, Sampler());
  if (node.has(4))
    y = y * node.tensor(4).reshape({rows, groups, 1, taps * height * width});
  return y.reshape({rows, channels, taps, height * width});
}

void deformedConvolution(Node &node) {
  Tensor x = node.tensor(0), weight = node.weight(1);
  if (x.dim() != 4 || weight.dim() != 4)
    Node::fail("a deformed convolution in other than 2 dimensions is not supported");
  std::vector<WindowDim> windows = windowsOf(node, {weight.size(2).size, weight.size(3).size});
  std::int64_t groups = node.integer("group", 1), channels = x.size(1).size, results = weight.size(0).size;
  if (groups < 1 || channels != weight.size(1).size * groups || results % groups != 0)
    Node::fail("the weight does not fit " + x.size(1).str() + " channels in " + std::to_string(groups) + " groups");
  Tensor elements = deformedWindows(node, x, windows);
  Dim taps = elements.size(2), places = elements.size(3);
  Tensor y = einsum("ngckl,gock->ngol", elements.reshape({x.size(0), groups, channels / groups, taps, places}),
                    weight.reshape({groups, results / groups, channels / groups, taps}));
  y = y.reshape({x.size(0), results, windows[0].positions(), windows[1].positions()});
  node.set(0, node.has(3) ? y + node.weight(3).reshape({results, 1, 1}) : y);
}

} // namespace sluice::onnx
