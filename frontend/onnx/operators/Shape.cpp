// Shapes: constants of a shape, the sizes of tensors, and the same elements under other dimensions.
#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Moving.h"
#include "frontend/onnx/operators/Sizes.h"
#include "sluice/ops.h"

#include <algorithm>
#include <cmath>

namespace sluice::onnx {

//===- constants --------------------------------------------------------------------------------------------------===//

void constantOf(Node &node) {
  if (node.hasAttribute("value"))
    return node.set(0, node.tensorAttribute("value"));
  if (node.hasAttribute("value_int"))
    return node.set(0, Known::scalar(node.integer("value_int", 0)));
  if (node.hasAttribute("value_ints"))
    return node.set(0, Known::vector(node.integers("value_ints")));
  if (node.hasAttribute("value_float")) {
    double value = node.real("value_float", 0);
    return node.set(0, Known::ofReals(ElementType::f32, {}, {&value, 1}));
  }
  if (!node.hasAttribute("value_floats"))
    Node::fail(node.hasAttribute("sparse_value") ? "a sparse value is not supported" : "strings are not supported");
  std::vector<double> values = node.reals("value_floats");
  node.set(0, Known::ofReals(ElementType::f32, {std::int64_t(values.size())}, values));
}

/// The sizes that an input holds.
static std::vector<Size> shapeInput(Node &node, std::size_t input, const char *what) {
  std::optional<std::vector<Size>> sizes = node.sizes(input);
  if (!sizes)
    Node::fail(std::string(what) + " must be known when the model is imported");
  for (const Size &size : *sizes)
    if (isLess(size, {}) != false && size != Size{-1, 0})
      Node::fail(std::string(what) + " has a dimension of " + textOf(size));
  return *sizes;
}

static std::vector<Size> positiveShape(Node &node, std::size_t input, const char *what) {
  std::vector<Size> shape = shapeInput(node, input, what);
  if (std::ranges::find(shape, Size{-1, 0}) != shape.end())
    Node::fail(std::string(what) + " has a dimension of -1");
  return shape;
}

void constantOfShape(Node &node) {
  std::vector<Size> shape = positiveShape(node, 0, "the shape");
  constexpr float zero = 0;
  Known value = node.hasAttribute("value") ? node.tensorAttribute("value")
                                           : Known::uniform(ElementType::f32, {}, std::as_bytes(std::span(&zero, 1)));
  if (value.count() != 1)
    throw Malformed("the value is not one element");
  elementsOf(shape);
  if (std::optional<Dims> dims = knownDims(shape))
    return node.set(0, Known::uniform(value.type(), std::move(*dims), {value.at(0), value.elementSize()}));
  node.set(0, expandedTo(node, node.constant(value.reshaped({})), shape), value.type());
}

/// An integer range, exact also where its bounds are near those of i64.
static Known integerRange(ElementType type, std::int64_t start, std::int64_t limit, std::int64_t delta) {
  __int128 distance = __int128(limit) - start, count = (distance + delta + (delta > 0 ? -1 : 1)) / delta;
  if (count > kMostMoved)
    Node::fail("a range of more than 2^22 elements is not supported");
  std::vector<std::int64_t> values(std::size_t(std::max(count, __int128(0))));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = start + std::int64_t(i) * delta;
  return Known::ofIntegers(type, {std::int64_t(values.size())}, values);
}

void rangeOf(Node &node) {
  ElementType type = node.type(0);
  if (isInteger(type)) {
    std::int64_t start = node.integer(0, "the start"), limit = node.integer(1, "the limit");
    std::int64_t delta = node.integer(2, "the delta");
    if (delta == 0)
      throw Malformed("a range has steps of 0");
    return node.set(0, integerRange(type, start, limit, delta));
  }
  double start = node.real(0, "the start"), limit = node.real(1, "the limit"), delta = node.real(2, "the delta");
  double count = std::max(std::ceil((limit - start) / delta), 0.0);
  if (!(count <= double(kMostMoved)))
    Node::fail("a range of more than 2^22 elements is not supported");
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = start + double(i) * delta;
  node.set(0, Known::ofReals(type, {std::int64_t(values.size())}, values));
}

void eyeLike(Node &node) {
  Dims dims = node.dims(0);
  auto type = ElementType(node.integer("dtype", std::int64_t(node.type(0))));
  std::int64_t k = node.integer("k", 0);
  if (dims.size() != 2 || countOf(dims) > kMostMoved)
    Node::fail("the operand is no matrix of at most 2^22 elements");
  std::vector<std::int64_t> values(static_cast<std::size_t>(countOf(dims)));
  for (std::int64_t i = 0; i < dims[0]; ++i)
    for (std::int64_t j = 0; j < dims[1]; ++j)
      values[std::size_t(i * dims[1] + j)] = j - i == k;
  node.set(0, Known::ofIntegers(type, dims, values));
}

//===- sizes of tensors -------------------------------------------------------------------------------------------===//

void shapeOfTensor(Node &node) {
  std::vector<Size> shape = node.shape(0);
  auto rank = std::int64_t(shape.size());
  auto bound = [&](const char *name, std::int64_t otherwise) {
    std::int64_t index = node.integer(name, otherwise);
    return std::clamp<std::int64_t>(index < 0 ? index + rank : index, 0, rank);
  };
  std::int64_t start = bound("start", 0), end = std::max(start, bound("end", rank));
  node.set(0, Sizes{.isScalar = false, .elements = {shape.begin() + start, shape.begin() + end}});
}

void sizeOfTensor(Node &node) { node.set(0, Sizes{.isScalar = true, .elements = {elementsOf(node.shape(0))}}); }

//===- the same elements ------------------------------------------------------------------------------------------===//

/// The shape that Reshape requests: an attribute before version 5, then an input.
static std::vector<Size> reshapeTarget(Node &node) {
  std::vector<Size> from = node.shape(0);
  std::vector<Size> to = node.opset() < 5 ? sizesOf(node.integers("shape")) : shapeInput(node, 1, "the shape");
  bool keepsZero = node.integer("allowzero", 0) != 0;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] == Size() && !keepsZero) {
      if (i >= from.size())
        Node::fail("the shape copies dimension " + std::to_string(i) + ", which does not exist");
      to[i] = from[i];
    } else if (to[i] == Size{-1, 0}) {
      if (open)
        Node::fail("two dimensions of the shape are -1");
      open = i;
      to[i] = {1, 0};
    }
  }
  Size count = elementsOf(from), rest = elementsOf(to);
  std::optional<Size> left = open ? quotientOf(count, rest) : std::nullopt;
  if (open && left)
    to[*open] = *left;
  if (open ? !left : count != rest)
    Node::fail("a tensor of " + textOf(count) + " elements has no shape of " + textOf(rest));
  return to;
}

/// Dimensions before `axis` become the first of two, and the others the second.
static std::vector<Size> flattenTarget(Node &node) {
  std::vector<Size> from = node.shape(0);
  auto rank = std::int64_t(from.size());
  std::int64_t axis = node.integer("axis", 1);
  axis = axis == rank ? rank : Node::axisOf(axis, std::max<std::int64_t>(rank, 1));
  return {elementsOf({from.begin(), from.begin() + axis}), elementsOf({from.begin() + axis, from.end()})};
}

/// Axes: an attribute before version 13, then an input. Sorted, counted from the front of `rank` dimensions.
static std::vector<std::int64_t> axesOf(Node &node, std::int64_t rank) {
  std::vector<std::int64_t> axes = node.opset() < 13
                                       ? node.integers("axes")
                                       : (node.has(1) ? node.integers(1, "axes") : std::vector<std::int64_t>());
  for (std::int64_t &axis : axes)
    axis = Node::axisOf(axis, rank);
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end())
    throw Malformed("an axis is given twice");
  return axes;
}

static std::vector<Size> squeezeTarget(Node &node) {
  std::vector<Size> from = node.shape(0), to;
  bool isGiven = node.opset() < 13 ? node.hasAttribute("axes") : node.has(1);
  std::vector<std::int64_t> axes = axesOf(node, std::int64_t(from.size()));
  for (std::size_t i = 0; i < from.size(); ++i) {
    bool isNamed = std::ranges::binary_search(axes, std::int64_t(i));
    if (isNamed && from[i] != Size{1, 0})
      Node::fail("a dimension of " + textOf(from[i]) + " is squeezed");
    if (isGiven ? !isNamed : from[i] != Size{1, 0})
      to.push_back(from[i]);
  }
  return to;
}

static std::vector<Size> unsqueezeTarget(Node &node) {
  std::vector<Size> to = node.shape(0);
  std::size_t added = node.opset() < 13 ? node.integers("axes").size() : node.integers(1, "axes").size();
  for (std::int64_t axis : axesOf(node, std::int64_t(to.size() + added)))
    to.insert(to.begin() + axis, Size{1, 0});
  return to;
}

/// Handlers and evaluators of operators that change only the dimensions.
#define RESHAPING(handler, evaluator, target)                                                                          \
  void handler(Node &node) { node.set(0, reshapedTo(node, node.tensor(0), target(node)), node.type(0)); }              \
  bool evaluator(Node &node) { return setIfMoved(node, 0, redimensioned(node.input(0), target(node))); }
RESHAPING(reshaped, reshapeKnown, reshapeTarget)
RESHAPING(flattened, flattenKnown, flattenTarget)
RESHAPING(squeezed, squeezeKnown, squeezeTarget)
RESHAPING(unsqueezed, unsqueezeKnown, unsqueezeTarget)
#undef RESHAPING

static std::vector<Size> expandTarget(Node &node) {
  std::vector<Size> shape = broadcastShape(node.shape(0), positiveShape(node, 1, "the shape"));
  elementsOf(shape);
  return shape;
}

void expanded(Node &node) { node.set(0, expandedTo(node, node.tensor(0), expandTarget(node)), node.type(0)); }
bool expandKnown(Node &node) {
  std::optional<Dims> to = knownDims(expandTarget(node));
  return to && setIfMoved(node, 0, moved(node.input(0), *to, [&] {
                            Dims from = node.dims(0), strides = stridesOf(from);
                            Offsets offsets;
                            for (std::size_t i = 0, missing = to->size() - from.size(); i < to->size(); ++i)
                              offsets.push_back(offsetsOf(
                                  (*to)[i], i < missing || from[i - missing] == 1 ? 0 : strides[i - missing]));
                            return offsets;
                          }));
}

} // namespace sluice::onnx
