// Movement: transposing, repeating and padding.
#include "frontend/onnx/operators/Movement.h"
#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Moving.h"
#include "frontend/onnx/operators/Sizes.h"
#include "sluice/formulas.h"
#include "sluice/ops.h"

#include <algorithm>
#include <numeric>

namespace sluice::onnx {

//===- transpose --------------------------------------------------------------------------------------------------===//

std::vector<std::int64_t> orderOfDims(const Node &node) {
  std::int64_t rank = node.rank(0);
  std::vector<std::int64_t> order = node.integers("perm");
  if (!node.hasAttribute("perm"))
    for (std::int64_t i = rank; i-- > 0;)
      order.push_back(i);
  std::vector<bool> isNamed(static_cast<std::size_t>(rank));
  for (std::int64_t &dim : order) {
    dim = Node::axisOf(dim, rank);
    isNamed[std::size_t(dim)] = true;
  }
  if (std::int64_t(order.size()) != rank || std::ranges::find(isNamed, false) != isNamed.end())
    throw Malformed("perm does not name every dimension once");
  return order;
}

void transposed(Node &node) { node.set(0, permute(node.tensor(0), orderOfDims(node)), node.type(0)); }
bool transposeKnown(Node &node) {
  std::vector<std::int64_t> order = orderOfDims(node);
  Dims from = node.dims(0), strides = stridesOf(from), dims;
  for (std::int64_t dim : order)
    dims.push_back(from[std::size_t(dim)]);
  return setIfMoved(node, 0, moved(node.input(0), dims, [&] {
                      Offsets offsets;
                      for (std::int64_t dim : order)
                        offsets.push_back(offsetsOf(from[std::size_t(dim)], strides[std::size_t(dim)]));
                      return offsets;
                    }));
}

//===- blocks -----------------------------------------------------------------------------------------------------===//

/// The sizes of images [N, C, H, W] and of a block. C, or H and W, must be multiples of a number.
static std::vector<Size> blockedImage(Node &node, std::int64_t &block) {
  std::vector<Size> shape = node.shape(0);
  block = node.integer("blocksize", 0);
  if (shape.size() != 4)
    Node::fail("the operand has " + std::to_string(shape.size()) + " dimensions, not 4");
  if (block < 1 || block > 1 << 16)
    Node::fail("blocks of size " + std::to_string(block) + " are not supported");
  return shape;
}

static Size partOf(const Size &size, std::int64_t parts) {
  std::optional<Size> part = quotientOf(size, {parts, 0});
  if (!part)
    Node::fail("a dimension of " + textOf(size) + " is no multiple of " + std::to_string(parts));
  return *part;
}

static Size multipleOf(const Size &size, std::int64_t times) { return elementsOf({size, {times, 0}}); }

void depthToSpace(Node &node) {
  std::int64_t block = 0;
  std::vector<Size> image = blockedImage(node, block);
  Size channels = partOf(image[1], block * block), b{block, 0};
  std::string mode = node.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    Node::fail("mode '" + mode + "' is not supported");
  bool blocksFirst = mode == "DCR";
  std::vector<Size> apart = blocksFirst ? std::vector{image[0], b, b, channels, image[2], image[3]}
                                        : std::vector{image[0], channels, b, b, image[2], image[3]};
  Tensor x =
      permute(reshapedTo(node, node.tensor(0), apart), blocksFirst ? Axes{0, 3, 4, 1, 5, 2} : Axes{0, 1, 4, 2, 5, 3});
  node.set(0, reshapedTo(node, x, {image[0], channels, multipleOf(image[2], block), multipleOf(image[3], block)}),
           node.type(0));
}

void spaceToDepth(Node &node) {
  std::int64_t block = 0;
  std::vector<Size> image = blockedImage(node, block);
  Size height = partOf(image[2], block), width = partOf(image[3], block), b{block, 0};
  Tensor x = permute(reshapedTo(node, node.tensor(0), {image[0], image[1], height, b, width, b}), {0, 3, 5, 1, 2, 4});
  node.set(0, reshapedTo(node, x, {image[0], multipleOf(image[1], block * block), height, width}), node.type(0));
}

//===- repetition -------------------------------------------------------------------------------------------------===//

/// The times that each dimension is repeated: since version 6 an input, before one number and one axis.
static std::vector<Size> repeatsOf(Node &node) {
  std::vector<Size> shape = node.shape(0), times(shape.size(), {1, 0});
  if (node.opset() < 6) {
    std::int64_t axis = Node::axisOf(node.integer(2, "the axis"), node.rank(0));
    times[std::size_t(axis)] = {node.integer(1, "the number of tiles"), 0};
  } else {
    std::optional<std::vector<Size>> given = node.sizes(1);
    if (!given)
      Node::fail("repeats must be known when the model is imported");
    times = *given;
  }
  if (times.size() != shape.size())
    throw Malformed(std::to_string(times.size()) + " repeats of " + std::to_string(shape.size()) + " dimensions");
  for (const Size &number : times)
    if (isLess(number, {}) != false)
      Node::fail("a dimension is repeated " + textOf(number) + " times");
  return times;
}

/// [2, 3] four times along the last dimension: [2, 1, 3], [2, 4, 3], [2, 12].
void tiled(Node &node) {
  std::vector<Size> from = node.shape(0), times = repeatsOf(node), apart, wide, to;
  for (std::size_t i = 0; i < from.size(); ++i) {
    to.push_back(elementsOf({from[i], times[i]}));
    if (from[i] != Size{1, 0} && times[i] != Size{1, 0}) {
      apart.push_back({1, 0});
      wide.push_back(times[i]);
    }
    apart.push_back(from[i]);
    wide.push_back(from[i] == Size{1, 0} ? times[i] : from[i]);
  }
  elementsOf(to);
  if (std::optional<Dims> dims = knownDims(to); dims && countOf(*dims) == 0)
    return node.set(0, emptyValue(node.type(0), *dims));
  Tensor x = expandedTo(node, reshapedTo(node, node.tensor(0), apart), wide);
  node.set(0, reshapedTo(node, x, to), node.type(0));
}

bool tileKnown(Node &node) {
  std::optional<Dims> times = knownDims(repeatsOf(node));
  if (!times)
    return false;
  Dims from = node.dims(0), strides = stridesOf(from), to;
  for (std::size_t i = 0; i < from.size(); ++i)
    to.push_back(countOf({from[i], (*times)[i]}));
  return setIfMoved(node, 0, moved(node.input(0), to, [&] {
                      Offsets offsets;
                      for (std::size_t i = 0; i < from.size(); ++i) {
                        Dims &list = offsets.emplace_back();
                        for (std::int64_t j = 0; j < to[i]; ++j)
                          list.push_back(j % from[i] * strides[i]);
                      }
                      return offsets;
                    }));
}

//===- padding ----------------------------------------------------------------------------------------------------===//

/// The padding before and after each dimension: attributes until version 11, then inputs.
static std::vector<std::pair<std::int64_t, std::int64_t>> paddingOf(Node &node) {
  auto rank = std::size_t(node.rank(0));
  std::vector<std::int64_t> pads = node.opset() < 2    ? node.integers("paddings")
                                   : node.opset() < 11 ? node.integers("pads")
                                                       : node.integers(1, "the padding");
  std::vector<std::int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (node.has(3))
    axes = node.integers(3, "axes");
  if (pads.size() != 2 * axes.size())
    throw Malformed(std::to_string(pads.size()) + " numbers pad " + std::to_string(axes.size()) + " dimensions");
  std::vector<std::pair<std::int64_t, std::int64_t>> padding(rank);
  for (std::size_t i = 0; i < axes.size(); ++i)
    padding[std::size_t(Node::axisOf(axes[i], std::int64_t(rank)))] = {pads[i], pads[i + axes.size()]};
  return padding;
}

/// Padding in the graph's order: pairs, the last dimension first.
static std::vector<std::int64_t> lastFirst(const std::vector<std::pair<std::int64_t, std::int64_t>> &padding) {
  std::vector<std::int64_t> list;
  for (std::size_t i = padding.size(); i-- > 0;) {
    list.push_back(padding[i].first);
    list.push_back(padding[i].second);
  }
  return list;
}

static Tensor paddedByConstant(Node &node, const Tensor &x, const std::vector<std::int64_t> &pads) {
  if (node.opset() < 11 || !node.has(2))
    return pad(x, pads, node.opset() < 11 ? node.real("value", 0) : 0.0);
  const Known *value = node.known(2);
  if (value && value->count() == 1 && (isFloat(value->type()) || double(value->integer(0)) == value->real(0)))
    return pad(x, pads, value->real(0));
  Tensor isInside = pad(full_like(x, 1).to(boolean), pads);
  return where(isInside, pad(x, pads), reshapedTo(node, node.tensor(2), {}));
}

void padded(Node &node) {
  Tensor x = node.tensor(0);
  std::vector<std::pair<std::int64_t, std::int64_t>> padding = paddingOf(node);
  std::string mode = node.text("mode", "constant");
  if (mode == "constant")
    return node.set(0, paddedByConstant(node, x, lastFirst(padding)), node.type(0));
  if (mode != "reflect" && mode != "edge" && mode != "wrap")
    Node::fail("mode '" + mode + "' is not supported");
  std::vector<std::pair<std::int64_t, std::int64_t>> cropping(padding.size());
  for (std::size_t i = 0; i < padding.size(); ++i) {
    cropping[i] = {std::min<std::int64_t>(padding[i].first, 0), std::min<std::int64_t>(padding[i].second, 0)};
    padding[i] = {std::max<std::int64_t>(padding[i].first, 0), std::max<std::int64_t>(padding[i].second, 0)};
  }
  PadMode how = mode == "reflect" ? PadMode::reflect : mode == "edge" ? PadMode::replicate : PadMode::circular;
  node.set(0, pad(pad(x, lastFirst(cropping)), lastFirst(padding), how), node.type(0));
}

//===- triangles --------------------------------------------------------------------------------------------------===//

/// x above or below a diagonal that is computed, and 0 elsewhere.
static Tensor triangleAt(Node &node, const Tensor &x, const Tensor &diagonal, bool isUpper) {
  std::int64_t rows = x.size(-2).size, columns = x.size(-1).size;
  Tensor above = node.graph().arange(double(columns)) - node.graph().arange(double(rows)).unsqueeze(1);
  Tensor isKept = isUpper ? above >= diagonal : above <= diagonal;
  return where(isKept, x, zeros_like(x));
}

void triangle(Node &node) {
  bool isUpper = node.integer("upper", 1) != 0;
  if (const Known *known = node.known(0); known && known->count() == 0)
    return node.set(0, node.inputValue(0));
  Tensor x = node.tensor(0);
  if (x.dim() < 2 || x.size(-2).symbolic() || x.size(-1).symbolic())
    Node::fail("the operand has no two dimensions of a size after the batch");
  if (node.has(1) && !node.known(1))
    return node.set(0, triangleAt(node, x, reshapedTo(node, node.tensor(1), {}), isUpper), node.type(0));
  constexpr std::int64_t most = std::int64_t(1) << 31;
  std::int64_t diagonal = std::clamp(node.has(1) ? node.integer(1, "the diagonal") : 0, -most, most);
  node.set(0, isUpper ? triu(x, diagonal) : tril(x, diagonal), node.type(0));
}

} // namespace sluice::onnx
