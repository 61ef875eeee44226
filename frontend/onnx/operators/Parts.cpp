// Parts: slices and splits along dimensions.
#include "frontend/onnx/operators/Parts.h"

#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Moving.h"
#include "frontend/onnx/operators/Sizes.h"
#include "sluice/formulas.h"
#include "sluice/ops.h"

#include <algorithm>
#include <limits>

namespace sluice::onnx {

//===- slices -----------------------------------------------------------------------------------------------------===//

namespace {

/// `count` indices of a dimension from `start` on.
struct Part {
  std::int64_t start, count, step;
};

} // namespace

using Parts = std::vector<std::optional<Part>>; ///< by dimension; nothing: all of it

static bool isWhole(const Size &size, const Size &start, const Size &end, std::int64_t step) {
  std::optional<Size> least = differenceOf({}, size);
  bool startsFirst = start == Size() || (least && isLess(*least, start) == false);
  return step == 1 && startsFirst && isLess(end, size) == false;
}

static std::optional<Part> partOfDimension(const Size &size, const Size &start, const Size &end, std::int64_t step) {
  if (step == 0)
    throw Malformed("a slice has steps of 0");
  if (isWhole(size, start, end, step))
    return std::nullopt;
  if (!size.isKnown() || !start.isKnown() || !end.isKnown())
    Node::fail("elements " + textOf(start) + " to " + textOf(end) + " of a dimension of " + textOf(size) +
               " are no number of elements that is known");
  std::int64_t n = size.constant, most = step < 0 ? n - 1 : n;
  if (n == 0)
    return std::nullopt;
  auto clamped = [&](std::int64_t index, std::int64_t least) {
    return std::clamp(index < 0 ? index + n : index, least, most);
  };
  std::int64_t from = clamped(start.constant, 0), to = clamped(end.constant, step < 0 ? -1 : 0);
  std::int64_t distance = step < 0 ? from - to : to - from;
  std::int64_t stride = step < 0 ? -std::max(step, -std::numeric_limits<std::int64_t>::max()) : step;
  return Part{from, distance <= 0 ? 0 : (distance - 1) / stride + 1, step};
}

/// The list of an input since version 10, and of an attribute before.
static std::optional<std::vector<Size>> sliceList(Node &node, std::size_t input, const char *name) {
  if (node.opset() < 10)
    return node.hasAttribute(name) ? std::optional(sizesOf(node.integers(name))) : std::nullopt;
  if (!node.has(input))
    return std::nullopt;
  std::optional<std::vector<Size>> list = node.sizes(input);
  if (!list)
    Node::fail(std::string(name) + " must be known when the model is imported");
  return list;
}

static Parts partsOfSlice(Node &node) {
  std::vector<Size> shape = node.shape(0);
  auto starts = sliceList(node, 1, "starts"), ends = sliceList(node, 2, R"(ends)"), axes = sliceList(node, 3, "axes"),
       steps = node.opset() < 10 ? std::nullopt : sliceList(node, 4, "steps");
  if (!starts || !ends)
    throw Malformed("a slice lacks bounds");
  std::size_t count = starts->size();
  if (ends->size() != count || (axes ? axes->size() != count : count > shape.size()) ||
      (steps && steps->size() != count))
    throw Malformed("the bounds of a slice are of different dimensions");
  Parts parts(shape.size());
  std::vector<bool> isNamed(shape.size());
  for (std::size_t i = 0; i < count; ++i) {
    auto axis = std::size_t(axes ? Node::axisOf((*axes)[i].constant, node.rank(0)) : std::int64_t(i));
    if (isNamed[axis])
      throw Malformed("an axis is given twice");
    isNamed[axis] = true;
    if (steps && !(*steps)[i].isKnown())
      Node::fail("steps of " + textOf((*steps)[i]) + " are not supported");
    parts[axis] = partOfDimension(shape[axis], (*starts)[i], (*ends)[i], steps ? (*steps)[i].constant : 1);
  }
  return parts;
}

/// The dimensions of the parts of a shape.
static std::vector<Size> sizesOfParts(std::vector<Size> shape, const Parts &parts) {
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (parts[i])
      shape[i] = {parts[i]->count, 0};
  return shape;
}

static Tensor partsOf(Tensor x, const Parts &parts) {
  std::vector<std::int64_t> backwards;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i])
      continue;
    auto [start, count, step] = *parts[i];
    std::int64_t last = start + (count - 1) * step;
    x = slice(x, std::int64_t(i), std::min(start, last), std::max(start, last) + 1, step < 0 ? -step : step);
    if (step < 0 && count > 1)
      backwards.push_back(std::int64_t(i));
  }
  return backwards.empty() ? x : flip(x, backwards);
}

/// Parts of input 0 that the graph computes, or a value without elements.
static ValuePtr computedParts(Node &node, const Parts &parts) {
  std::vector<Size> shape = sizesOfParts(node.shape(0), parts);
  std::optional<Dims> dims = knownDims(shape);
  if (dims && countOf(*dims) == 0)
    return emptyValue(node.type(0), *dims);
  node.shapeOf(shape); // throws if there are no elements
  return valueOf(partsOf(node.tensor(0), parts), node.type(0));
}

/// Parts of input 0, which is no tensor; null if the graph must compute them.
static ValuePtr knownParts(Node &node, const Parts &parts) {
  Dims from = node.dims(0), strides = stridesOf(from), to = *knownDims(sizesOfParts(node.shape(0), parts));
  return moved(node.input(0), to, [&] {
    Offsets offsets;
    for (std::size_t i = 0; i < from.size(); ++i) {
      offsets.push_back(offsetsOf(to[i], strides[i] * (parts[i] ? parts[i]->step : 1)));
      for (std::int64_t &offset : offsets.back())
        offset += parts[i] ? parts[i]->start * strides[i] : 0;
    }
    return offsets;
  });
}

ValuePtr partOf(Node &node, std::size_t axis, std::int64_t start, std::int64_t count) {
  Parts parts(std::size_t(node.rank(0)));
  parts[axis] = Part{start, count, 1};
  ValuePtr known = node.input(0).tensor() ? nullptr : knownParts(node, parts);
  return known ? known : computedParts(node, parts);
}

void sliced(Node &node) { node.set(0, computedParts(node, partsOfSlice(node))); }
bool sliceKnown(Node &node) { return setIfMoved(node, 0, knownParts(node, partsOfSlice(node))); }

//===- splits -----------------------------------------------------------------------------------------------------===//

/// The sizes of the parts: given by an attribute before version 13, and by an input in versions 1 and 13 and later;
/// else equal, and the last may be smaller.
static std::vector<Size> splitSizes(Node &node, const Size &size) {
  if (node.opset() < 13 && node.hasAttribute("split"))
    return sizesOf(node.integers("split"));
  if (node.has(1)) {
    std::optional<std::vector<Size>> sizes = node.sizes(1);
    if (!sizes)
      Node::fail("the sizes of parts must be known when the model is imported");
    return *sizes;
  }
  auto parts = std::int64_t(node.outputs());
  if (std::int64_t asked = node.integer("num_outputs", parts); asked != parts || parts == 0)
    throw Malformed("num_outputs is " + std::to_string(asked) + ", and there are " + std::to_string(parts));
  if (parts == 1)
    return {size};
  if (!size.isKnown())
    Node::fail("the batch cannot be split");
  std::int64_t each = (size.constant + parts - 1) / parts;
  std::vector<Size> sizes;
  for (std::int64_t left = size.constant; std::int64_t(sizes.size()) < parts; left -= sizes.back().constant)
    sizes.push_back({std::min(each, left), 0});
  return sizes;
}

/// Splits by `setPart`, which receives the number of a result and its parts; false if one call returns false.
template <class SetPart> static bool splitBy(Node &node, SetPart setPart) {
  std::vector<Size> shape = node.shape(0);
  auto axis = std::size_t(Node::axisOf(node.integer("axis", 0), node.rank(0)));
  std::vector<Size> sizes = splitSizes(node, shape[axis]);
  if (sizes.size() != node.outputs())
    throw Malformed(std::to_string(sizes.size()) + " sizes of " + std::to_string(node.outputs()) + " parts");
  std::int64_t start = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Parts parts(shape.size());
    if (sizes.size() > 1 && (!sizes[i].isKnown() || !shape[axis].isKnown()))
      Node::fail("the batch cannot be split");
    if (sizes.size() > 1) {
      std::int64_t left = shape[axis].constant - start, size = sizes[i].constant;
      if (size < 0 || size > left || (i + 1 == sizes.size() && size != left))
        throw Malformed("the sizes of parts do not add up to " + textOf(shape[axis]));
      parts[axis] = size == shape[axis].constant ? std::nullopt : std::optional(Part{start, size, 1});
      start += size;
    } else if (sizes[i] != shape[axis]) {
      Node::fail("a part of " + textOf(sizes[i]) + " is not all of " + textOf(shape[axis]));
    }
    if (node.wants(i) && !setPart(i, parts))
      return false;
  }
  return true;
}

void splitParts(Node &node) {
  splitBy(node, [&](std::size_t output, const Parts &parts) {
    node.set(output, computedParts(node, parts));
    return true;
  });
}
bool splitKnown(Node &node) {
  return splitBy(
      node, [&](std::size_t output, const Parts &parts) { return setIfMoved(node, output, knownParts(node, parts)); });
}

} // namespace sluice::onnx
