// Tensors with elements replaced or combined at indices that are data.
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Casting.h"
#include "frontend/onnx/operators/Indexing.h"
#include "frontend/onnx/operators/Sizes.h"
#include "sluice/formulas.h"
#include "sluice/ops.h"

#include <algorithm>

namespace sluice::onnx {

namespace {

/// The combination of an element with an update.
using Combine = Tensor (*)(const Tensor &x, const Tensor &update);

} // namespace

/// Null: the update replaces the element.
static Combine combineOf(Node &node) {
  std::string reduction = node.text("reduction", "none");
  if (reduction == "none")
    return nullptr;
  if (reduction == "add")
    return [](const Tensor &x, const Tensor &update) { return x + update; };
  if (reduction == "mul")
    return [](const Tensor &x, const Tensor &update) { return x * update; };
  if (reduction == "max")
    return [](const Tensor &x, const Tensor &update) { return maximum(x, update); };
  if (reduction == "min")
    return [](const Tensor &x, const Tensor &update) { return minimum(x, update); };
  Node::fail("reduction '" + reduction + "' is not supported");
}

/// Up to this many updates of one element are unrolled; more are a scan.
static constexpr std::int64_t kMostUnrolled = 4;

/// x after the updates one after another along an axis, in which the index names elements of x. Updates at indices that
/// name no element change nothing.
static Tensor updatedInOrder(Node &node, const Tensor &x, const Tensor &index, const Tensor &updates, std::int64_t axis,
                             Combine combine) {
  Tensor place = countedAlong(node, x.size(axis).size, axis, x.dim());
  auto step = [&](const Tensor &before, const Tensor &at, const Tensor &update) {
    Tensor changed = combine ? combine(before, update) : update;
    return where(place == at, changed, before);
  };
  std::int64_t count = index.size(axis).size;
  if (count > kMostUnrolled)
    return scan({x}, {index, updates}, axis,
                [&](auto &carried, auto &slices) {
                  return ScanStep{{step(carried[0], slices[0].unsqueeze(axis), slices[1].unsqueeze(axis))}, {}};
                })
        .carried.front();
  Tensor y = x;
  for (std::int64_t i = 0; i < count; ++i)
    y = step(y, slice(index, axis, i, i + 1), slice(updates, axis, i, i + 1));
  return y;
}

/// Pads a tensor with a number to the sizes of x in all dimensions but one.
static Tensor paddedTo(const Tensor &x, const Tensor &part, std::int64_t axis, double value) {
  std::vector<std::int64_t> pads;
  for (std::int64_t i = x.dim(); i-- > 0;) {
    bool isEqual = i == axis || x.size(i) == part.size(i);
    if (!isEqual && (x.size(i).symbolic() || part.size(i).symbolic() || part.size(i).size > x.size(i).size))
      Node::fail("the indices have " + part.size(i).str() + " elements in a dimension of " + x.size(i).str());
    pads.insert(pads.end(), {0, isEqual ? 0 : x.size(i).size - part.size(i).size});
  }
  return std::ranges::count(pads, 0) == std::int64_t(pads.size()) ? part : pad(part, pads, value);
}

void scatteredElements(Node &node) {
  std::int64_t axis = Node::axisOf(node.integer("axis", 0), node.rank(0));
  Tensor x = node.tensor(0);
  if (node.rank(1) != x.dim() || node.shape(1) != node.shape(2))
    Node::fail("the indices, the updates and the operand differ in their dimensions");
  if (x.size(axis).symbolic())
    Node::fail("the index chooses rows of the batch");
  Tensor index = paddedTo(x, indexInput(node, 1, x.size(axis).size), axis, -1);
  Tensor updates = paddedTo(x, node.tensor(2), axis, 0);
  Combine combine = combineOf(node);
  bool isSum = node.text("reduction", "none") == "add" && is_float(x.dtype());
  // Padding adds zeros to the first element.
  Tensor y = isSum ? scatter_add(x, axis, index, updates) : updatedInOrder(node, x, index, updates, axis, combine);
  node.set(0, wrapped(y, node.type(0)), node.type(0));
}

/// x [P, ...] with the last update [M, ...] of each row that the index [M] names.
static Tensor rowsReplaced(Node &node, const Tensor &x, const Tensor &index, const Tensor &updates) {
  std::int64_t rows = x.size(0).size, count = index.size(0).size;
  Tensor order = countedAlong(node, count, 1, 2), row = countedAlong(node, rows, 0, 2);
  Tensor last = max(where(row == index, order, full_like(order, -1)), 1);
  std::vector<Size> beside(std::size_t(x.dim()), {1, 0});
  beside[0] = {rows, 0};
  Tensor isReplaced = reshapedTo(node, last >= 0.0, beside);
  return where(isReplaced, index_select(updates, 0, maximum(last, 0.0)), x);
}

/// Data [D..., R...], indices [M..., k] and updates [M..., R...]; k is the number of the dimensions D.
void scatteredTuples(Node &node) {
  std::vector<Size> data = node.shape(0), tuples = node.shape(1);
  if (tuples.empty() || !tuples.back().isKnown() || tuples.back().constant < 1 ||
      tuples.back().constant > std::int64_t(data.size()))
    Node::fail("the last dimension of the indices is not from 1 to " + std::to_string(data.size()));
  std::int64_t count = tuples.back().constant;
  std::optional<Dims> dims = knownDims({data.begin(), data.begin() + count});
  std::optional<Dims> places = knownDims({tuples.begin(), tuples.end() - 1});
  if (!dims || !places)
    Node::fail("the index chooses rows of the batch");
  std::vector<Size> rows(data.begin() + count, data.end()), changes = rows;
  rows.insert(rows.begin(), {countOf(*dims), 0});
  changes.insert(changes.begin(), {countOf(*places), 0});
  Tensor x = reshapedTo(node, node.tensor(0), rows), updates = reshapedTo(node, node.tensor(2), changes);
  Tensor index = reshapedTo(node, tupleInput(node, 1, *dims), {changes.front()});
  Combine combine = combineOf(node);
  Tensor y;
  if (!combine) {
    y = rowsReplaced(node, x, index, updates);
  } else if (node.text("reduction", "none") == "add" && is_float(x.dtype())) {
    y = index_add(x, 0, index, updates);
  } else {
    std::vector<Size> beside(changes.size(), {1, 0});
    beside[0] = changes.front();
    y = updatedInOrder(node, x, reshapedTo(node, index, beside), updates, 0, combine);
  }
  node.set(0, wrapped(reshapedTo(node, y, data), node.type(0)), node.type(0));
}

/// A cache [N, ..., S, ...] with an update [N, ..., T, ...] from an index on, which each row of N has.
void tensorScatter(Node &node) {
  std::int64_t rank = node.rank(0), axis = Node::axisOf(node.integer("axis", -2), rank);
  std::string mode = node.text("mode", "linear");
  if (mode != "linear" && mode != "circular")
    Node::fail("mode '" + mode + "' is not supported");
  Tensor cache = node.tensor(0), update = node.tensor(1);
  if (axis == 0 || update.dim() != rank || cache.size(axis).symbolic() || update.size(axis).symbolic())
    Node::fail("an update " + update.shape().str() + " of " + cache.shape().str() + " along dimension " +
               std::to_string(axis) + " is not supported");
  std::int64_t size = cache.size(axis).size, length = update.size(axis).size;
  if (length > size)
    Node::fail("the update has " + std::to_string(length) + " elements along a dimension of " + std::to_string(size));
  Tensor place = countedAlong(node, size, axis, rank); // in the update
  if (node.has(2)) {
    std::vector<Size> perRow(std::size_t(rank), {1, 0});
    perRow[0] = node.shape(0)[0];
    place = place - reshapedTo(node, node.tensor(2).to(i64), perRow);
  }
  if (mode == "circular")
    place = remainder(place, double(size));
  Tensor moved = take_along_dim(update, clip(place, 0.0, double(length - 1)), axis);
  node.set(0, where((place >= 0.0) & (place < double(length)), moved, cache), node.type(0));
}

} // namespace sluice::onnx
