// Elements at indices that are data.
#include "frontend/onnx/operators/Indexing.h"

#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Casting.h"
#include "frontend/onnx/operators/Moving.h"
#include "frontend/onnx/operators/Sizes.h"
#include "sluice/formulas.h"
#include "sluice/ops.h"

#include <algorithm>

namespace sluice::onnx {

//===- indices ----------------------------------------------------------------------------------------------------===//

std::vector<std::int64_t> knownIndices(const Known &known, std::int64_t size) {
  std::vector<std::int64_t> indices = known.integers();
  for (std::int64_t &index : indices) {
    if (index < -size || index >= size)
      Node::fail("the index " + std::to_string(index) + " is out of range for " + std::to_string(size));
    index += index < 0 ? size : 0;
  }
  return indices;
}

Tensor fromFront(const Tensor &index, std::int64_t size) {
  Tensor wide = index.to(i64);
  return where(wide < 0.0, wide + double(size), wide);
}

Tensor indexInput(Node &node, std::size_t input, std::int64_t size) {
  if (const Known *known = node.known(input); known && known->count() <= kMostMoved)
    return node.constant(Known::ofIntegers(ElementType::i64, known->dims(), knownIndices(*known, size)));
  return fromFront(node.tensor(input), size);
}

/// The size of a dimension that is not the batch.
static std::int64_t knownSize(const Node &node, std::size_t input, std::int64_t axis) {
  Size size = node.shape(input)[std::size_t(axis)];
  if (!size.isKnown())
    Node::fail("the index chooses rows of the batch");
  return size.constant;
}

Tensor countedAlong(Node &node, std::int64_t size, std::int64_t axis, std::int64_t rank) {
  std::vector<Size> shape(std::size_t(rank), {1, 0});
  shape[std::size_t(axis)] = {size, 0};
  return reshapedTo(node, node.graph().arange(double(size)), shape);
}

//===- gather -----------------------------------------------------------------------------------------------------===//

void gathered(Node &node) {
  std::int64_t axis = Node::axisOf(node.integer("axis", 0), node.rank(0)), size = knownSize(node, 0, axis);
  Tensor x = isFloat(node.type(0)) && node.rank(0) > 1 ? node.weight(0) : node.tensor(0);
  const Known *known = node.known(1);
  Tensor y = known && known->rank() == 0 ? select(x, axis, knownIndices(*known, size).front())
                                         : index_select(x, axis, indexInput(node, 1, size));
  node.set(0, y, node.type(0));
}

bool gatherKnown(Node &node) {
  const Known *known = node.known(1);
  auto axis = std::size_t(Node::axisOf(node.integer("axis", 0), node.rank(0)));
  if (!known || known->count() > kMostMoved)
    return false;
  Dims from = node.dims(0), strides = stridesOf(from), to = from;
  std::vector<std::int64_t> indices = knownIndices(*known, from[axis]);
  to[axis] = std::int64_t(indices.size());
  ValuePtr flat = moved(node.input(0), to, [&] {
    Offsets offsets;
    for (std::size_t i = 0; i < from.size(); ++i)
      offsets.push_back(offsetsOf(i == axis ? 0 : from[i], strides[i]));
    for (std::int64_t index : indices)
      offsets[axis].push_back(index * strides[axis]);
    return offsets;
  });
  to.erase(to.begin() + std::int64_t(axis));
  to.insert(to.begin() + std::int64_t(axis), known->dims().begin(), known->dims().end());
  return flat && setIfMoved(node, 0, redimensioned(*flat, sizesOf(to)));
}

void gatheredElements(Node &node) {
  std::int64_t axis = Node::axisOf(node.integer("axis", 0), node.rank(0));
  node.set(0, gather(node.tensor(0), axis, indexInput(node, 1, knownSize(node, 0, axis))), node.type(0));
}

Tensor tupleInput(Node &node, std::size_t input, const Dims &dims) {
  Tensor tuples = node.tensor(input).to(i64);
  Dims strides = stridesOf(dims);
  Tensor index;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    Tensor part = fromFront(select(tuples, -1, std::int64_t(i)), dims[i]) * double(strides[i]);
    index = i == 0 ? part : index + part;
  }
  return index;
}

/// The last dimension of the tuples of indices.
static std::int64_t tupleSize(const Node &node, std::size_t input, std::int64_t most) {
  std::vector<Size> shape = node.shape(input);
  if (shape.empty() || !shape.back().isKnown() || shape.back().constant < 1 || shape.back().constant > most)
    Node::fail("the last dimension of the indices is not from 1 to " + std::to_string(most));
  return shape.back().constant;
}

/// Dimensions that tuples choose from.
static Dims chosenDims(const std::vector<Size> &shape, std::int64_t first, std::int64_t count) {
  std::optional<Dims> dims = knownDims({shape.begin() + first, shape.begin() + first + count});
  if (!dims)
    Node::fail("the index chooses rows of the batch");
  return *dims;
}

/// Data [B..., D..., R...] and indices [B..., M..., k] give [B..., M..., R...]; k is the number of the dimensions D.
void gatheredTuples(Node &node) {
  std::int64_t shared = node.integer("batch_dims", 0);
  std::vector<Size> data = node.shape(0), index = node.shape(1);
  if (shared < 0 || shared >= node.rank(0) || shared >= node.rank(1))
    throw Malformed("batch_dims is " + std::to_string(shared));
  std::int64_t count = tupleSize(node, 1, node.rank(0) - shared);
  Dims dims = chosenDims(data, shared, count);
  Tensor at = tupleInput(node, 1, dims);
  std::vector<Size> rest(data.begin() + shared + count, data.end()), first(data.begin(), data.begin() + shared);
  std::vector<Size> flat = first, result(index.begin(), index.end() - 1);
  flat.push_back({countOf(dims), 0});
  result.insert(result.end(), rest.begin(), rest.end());
  if (shared == 0) {
    flat.insert(flat.end(), rest.begin(), rest.end());
    return node.set(0, index_select(reshapedTo(node, node.tensor(0), flat), 0, at), node.type(0));
  }
  flat.push_back(elementsOf(rest));
  first.push_back(elementsOf({index.begin() + shared, index.end() - 1}));
  first.push_back({1, 0});
  Tensor y = take_along_dim(reshapedTo(node, node.tensor(0), flat), reshapedTo(node, at, first), shared);
  node.set(0, reshapedTo(node, y, result), node.type(0));
}

/// The first `length` elements in reverse order; the others stay.
void reversedSequence(Node &node) {
  std::int64_t rank = node.rank(0);
  std::int64_t time = Node::axisOf(node.integer("time_axis", 0), rank);
  std::int64_t batch = Node::axisOf(node.integer("batch_axis", 1), rank), size = knownSize(node, 0, time);
  if (time == batch)
    throw Malformed("time_axis and batch_axis are equal");
  std::vector<Size> along(std::size_t(rank), {1, 0});
  along[std::size_t(batch)] = node.shape(0)[std::size_t(batch)];
  Tensor length = reshapedTo(node, node.tensor(1).to(i64), along), place = countedAlong(node, size, time, rank);
  Tensor from = where(place < length, length - 1.0 - place, place);
  node.set(0, take_along_dim(node.tensor(0), from, time), node.type(0));
}

//===- positions --------------------------------------------------------------------------------------------------===//

/// 1 at the label, 0 elsewhere, along a new dimension.
static Tensor marked(const Tensor &label, std::int64_t classes, std::int64_t axis) {
  Tensor last = one_hot(label, classes, boolean);
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i + 1 < last.dim(); ++i)
    order.push_back(i);
  order.insert(order.begin() + axis, last.dim() - 1);
  return permute(last, order);
}

void oneHot(Node &node) {
  std::int64_t depth = node.integer(1, "the depth"), axis = Node::axisOf(node.integer("axis", -1), node.rank(0) + 1);
  if (depth < 1 || depth > std::int64_t(1) << 31)
    Node::fail("a depth of " + std::to_string(depth) + " is not supported");
  if (node.shape(2) != std::vector<Size>{{2, 0}})
    throw Malformed("values are not two elements");
  Tensor values = node.tensor(2);
  Tensor isOn = marked(fromFront(castTo(node.tensor(0), node.type(0), ElementType::i64), depth), depth, axis);
  node.set(0, where(isOn, select(values, 0, 1), select(values, 0, 0)), node.type(2));
}

static void setExtreme(Node &node, Tensor (*find)(Arg, std::int64_t, bool, DType)) {
  std::int64_t axis = Node::axisOf(node.integer("axis", 0), node.rank(0));
  bool keeps = node.integer("keepdims", 1) != 0;
  Tensor x = node.tensor(0);
  if (x.dtype() == boolean)
    x = x.to(i32);
  if (node.integer("select_last_index", 0) == 0)
    return node.set(0, find(x, axis, keeps, i64));
  std::int64_t size = knownSize(node, 0, axis);
  node.set(0, double(size - 1) - find(flip(x, axis), axis, keeps, i64));
}
void argumentOfMax(Node &node) { setExtreme(node, argmax); }
void argumentOfMin(Node &node) { setExtreme(node, argmin); }

/// A k that is computed has the size of the dimension as its bound. After k elements, all are 0 with the index -1.
void largestElements(Node &node) {
  std::int64_t axis = Node::axisOf(node.integer("axis", -1), node.rank(0));
  bool isComputed = node.opset() >= 10 && node.input(1).tensor();
  std::int64_t k = node.opset() < 10 ? node.integer("k", 0)
                   : isComputed      ? knownSize(node, 0, axis)
                                     : node.integer(1, "k");
  TopK top = topk(node.tensor(0), k, axis, node.integer("largest", 1) != 0, true, i64);
  if (isComputed) {
    Tensor isTaken = countedAlong(node, k, axis, node.rank(0)) < reshapedTo(node, node.tensor(1), {});
    top = {where(isTaken, top.values, 0.0), where(isTaken, top.indices, -1.0)};
  }
  node.set(0, top.values, node.type(0));
  node.set(1, top.indices);
}

/// 1 at the first maximum of a dimension. Before version 13, all dimensions from the axis on are one.
void hardmax(Node &node) {
  std::vector<Size> shape = node.shape(0), merged = shape;
  bool isOne = node.opset() < 13;
  std::int64_t axis = Node::axisOf(node.integer("axis", isOne ? 1 : -1), node.rank(0));
  if (isOne) {
    merged.resize(std::size_t(axis));
    merged.push_back(elementsOf({shape.begin() + axis, shape.end()}));
  }
  if (!merged[std::size_t(axis)].isKnown())
    Node::fail("the maximum is one of the batch");
  Tensor x = reshapedTo(node, node.tensor(0), merged);
  Tensor y = marked(argmax(x, axis, false, i64), merged[std::size_t(axis)].constant, axis).to(x.dtype());
  node.set(0, reshapedTo(node, y, shape), node.type(0));
}

void cumulativeSum(Node &node) {
  std::int64_t axis = Node::axisOf(node.integer(1, "the axis"), node.rank(0));
  Tensor x = node.tensor(0);
  Tensor y =
      cumsum(x, axis, {.exclusive = node.integer("exclusive", 0) != 0, .reverse = node.integer("reverse", 0) != 0});
  node.set(0, wrapped(y.to(x.dtype()), node.type(0)), node.type(0));
}

void cumulativeProduct(Node &node) {
  std::int64_t axis = Node::axisOf(node.integer(1, "the axis"), node.rank(0));
  bool isExclusive = node.integer("exclusive", 0) != 0;
  Tensor x = node.tensor(0);
  auto step = [&](const std::vector<Tensor> &carried, const std::vector<Tensor> &slices) {
    Tensor product = carried[0] * slices[0];
    return ScanStep{{product}, {isExclusive ? carried[0] : product}};
  };
  knownSize(node, 0, axis);
  ScanStep products =
      scan({ones_like(select(x, axis, 0))}, {x}, axis, step, {.reverse = node.integer("reverse", 0) != 0});
  node.set(0, wrapped(products.stacked.front(), node.type(0)), node.type(0));
}

} // namespace sluice::onnx
