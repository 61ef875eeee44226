// Parts: slices, splits and joins along dimensions.
#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Moving.h"
#include "frontend/onnx/operators/Sizes.h"
#include "sluice/formulas.h"
#include "sluice/ops.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

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

/// Sets a result to parts of input 0, or to a value without elements.
static void setParts(Node &node, std::size_t output, const Parts &parts) {
  std::optional<Dims> dims = knownDims(sizesOfParts(node.shape(0), parts));
  if (dims && countOf(*dims) == 0)
    node.set(output, emptyValue(node.type(0), *dims));
  else
    node.set(output, partsOf(node.tensor(0), parts), node.type(0));
}

static bool setKnownParts(Node &node, std::size_t output, const Parts &parts) {
  Dims from = node.dims(0), strides = stridesOf(from), to = *knownDims(sizesOfParts(node.shape(0), parts));
  return setIfMoved(node, output, moved(node.input(0), to, [&] {
                      Offsets offsets;
                      for (std::size_t i = 0; i < from.size(); ++i) {
                        offsets.push_back(offsetsOf(to[i], strides[i] * (parts[i] ? parts[i]->step : 1)));
                        for (std::int64_t &offset : offsets.back())
                          offset += parts[i] ? parts[i]->start * strides[i] : 0;
                      }
                      return offsets;
                    }));
}

void sliced(Node &node) { setParts(node, 0, partsOfSlice(node)); }
bool sliceKnown(Node &node) { return setKnownParts(node, 0, partsOfSlice(node)); }

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
      throw Malformed("a part of " + textOf(sizes[i]) + " is not all of " + textOf(shape[axis]));
    }
    if (node.wants(i) && !setPart(i, parts))
      return false;
  }
  return true;
}

void splitParts(Node &node) {
  splitBy(node, [&](std::size_t output, const Parts &parts) {
    setParts(node, output, parts);
    return true;
  });
}
bool splitKnown(Node &node) {
  return splitBy(node, [&](std::size_t output, const Parts &parts) { return setKnownParts(node, output, parts); });
}

//===- joins ------------------------------------------------------------------------------------------------------===//

/// The inputs that have elements; all have one rank.
static std::vector<std::size_t> joinedInputs(Node &node) {
  std::vector<std::size_t> inputs;
  for (std::size_t i = 0; i < node.inputs(); ++i)
    if (const Known *known = node.known(i); !known || known->count() != 0)
      inputs.push_back(i);
  return inputs;
}

static std::int64_t joinedAxis(Node &node, std::size_t first) {
  return Node::axisOf(node.integer("axis", node.opset() < 4 ? 1 : 0), node.rank(first));
}

/// Of operands that are all empty: the sum of their sizes along the axis.
static void joinEmpty(Node &node) {
  Dims dims = node.dims(0);
  auto axis = std::size_t(joinedAxis(node, 0));
  for (std::size_t i = 1; i < node.inputs(); ++i)
    dims[axis] += node.rank(i) > std::int64_t(axis) ? node.dims(i)[axis] : 0;
  node.set(0, emptyValue(node.type(0), dims));
}

void joined(Node &node) {
  std::vector<std::size_t> inputs = joinedInputs(node);
  if (inputs.empty())
    return joinEmpty(node);
  if (inputs.size() == 1)
    return node.set(0, node.inputValue(inputs.front()));
  std::vector<Tensor> tensors;
  for (std::size_t input : inputs)
    tensors.push_back(node.tensor(input));
  node.set(0, cat(tensors, joinedAxis(node, inputs.front())), node.type(inputs.front()));
}

/// Joins known tensors that agree in all dimensions but the axis.
static Known joinedElements(const std::vector<const Known *> &parts, std::size_t axis) {
  Dims dims = parts.front()->dims();
  dims[axis] = 0;
  for (const Known *part : parts)
    dims[axis] += part->dims()[axis];
  std::size_t size = parts.front()->elementSize();
  std::vector<std::byte> bytes(std::size_t(countOf(dims)) * size);
  std::int64_t outer =
      std::accumulate(dims.begin(), dims.begin() + std::int64_t(axis), std::int64_t(1), std::multiplies());
  std::byte *to = bytes.data();
  for (std::int64_t i = 0; i < outer; ++i)
    for (const Known *part : parts)
      for (std::int64_t each = part->count() / outer, j = 0; j < each; ++j, to += size)
        std::memcpy(to, part->at(i * each + j), size);
  return {parts.front()->type(), std::move(dims), std::move(bytes)};
}

static void requireJoinable(const Known &first, const Known &part, std::size_t axis) {
  Dims a = first.dims(), b = part.dims();
  if (first.type() != part.type() || a.size() != b.size())
    throw Malformed("tensors of different types or dimensions are joined");
  a[axis] = b[axis] = 0;
  if (a != b)
    throw Malformed("tensors of different sizes are joined");
}

bool joinKnown(Node &node) {
  std::vector<std::size_t> inputs = joinedInputs(node);
  if (inputs.size() <= 1)
    return false;
  auto axis = std::size_t(joinedAxis(node, inputs.front()));
  std::vector<const Known *> parts;
  Sizes sizes;
  std::int64_t elements = 0;
  for (std::size_t input : inputs) {
    if (const Known *known = node.known(input)) {
      requireJoinable(parts.empty() ? *known : *parts.front(), *known, axis);
      parts.push_back(known);
      elements += known->count();
    }
    if (std::optional<std::vector<Size>> list = node.sizes(input); list && node.rank(input) == 1)
      sizes.elements.insert(sizes.elements.end(), list->begin(), list->end());
    else if (!node.known(input))
      throw Malformed("a scalar is joined");
  }
  if (elements > kMostMoved)
    return false;
  if (parts.size() == inputs.size())
    node.set(0, joinedElements(parts, axis));
  else if (parts.empty() || parts.front()->rank() == 1)
    node.set(0, std::move(sizes));
  else
    throw Malformed("vectors and matrices are joined");
  return true;
}

} // namespace sluice::onnx
