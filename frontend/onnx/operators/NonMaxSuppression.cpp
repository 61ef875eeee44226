// NonMaxSuppression: the boxes of the greatest scores that overlap no box of a greater score.
#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Moving.h"
#include "frontend/onnx/operators/Sizes.h"
#include "sluice/formulas.h"
#include "sluice/ops.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sluice::onnx {

namespace {

/// Boxes in [batches, classes or 1, boxes or 1]: along y and along x the edges, and the areas.
struct Boxes {
  std::array<Tensor, 2> low, high;
  Tensor area;

  Boxes at(const Tensor &index) const {
    auto taken = [&](const Tensor &x) { return take_along_dim(x, index, 2); };
    return {{taken(low[0]), taken(low[1])}, {taken(high[0]), taken(high[1])}, taken(area)};
  }
};

/// The sizes of the inputs.
struct Detections {
  std::int64_t batches, classes, boxes, slots; ///< slots: for results of one class of one batch
  std::int64_t rows() const { return batches * classes * slots; }
};

} // namespace

/// Boxes [batches, boxes, 4]: two corners of a diagonal (y, x, y, x), or center and size (x, y, width, height).
static Boxes boxesOf(const Tensor &x, bool areCentered) {
  auto column = [&](std::int64_t i) { return select(x, 2, i).unsqueeze(1); };
  Boxes boxes;
  for (std::int64_t i = 0; i < 2; ++i) {
    Tensor a = column(areCentered ? 1 - i : i), b = column(areCentered ? 3 - i : i + 2);
    boxes.low[std::size_t(i)] = areCentered ? a - b * 0.5 : minimum(a, b);
    boxes.high[std::size_t(i)] = areCentered ? a + b * 0.5 : maximum(a, b);
  }
  boxes.area = (boxes.high[1] - boxes.low[1]) * (boxes.high[0] - boxes.low[0]);
  return boxes;
}

/// Whether the intersection of two boxes is more than this part of their union. Boxes without an area overlap nothing.
static Tensor overlap(const Boxes &a, const Boxes &b, const Tensor &threshold) {
  auto extent = [&](std::size_t i) {
    return maximum(minimum(a.high[i], b.high[i]) - maximum(a.low[i], b.low[i]), 0.0);
  };
  Tensor shared = extent(1) * extent(0), all = a.area + b.area - shared;
  return (shared > 0.0) & (a.area > 0.0) & (b.area > 0.0) & (all > 0.0) & (shared / all > threshold);
}

static Detections detectionsOf(const Node &node) {
  std::optional<Dims> boxes = knownDims(node.shape(0)), scores = knownDims(node.shape(1));
  if (!boxes || !scores)
    Node::fail("boxes or scores have the batch, and the results of all rows are one list");
  if (boxes->size() != 3 || scores->size() != 3 || (*boxes)[2] != 4 || (*boxes)[0] != (*scores)[0] ||
      (*boxes)[1] != (*scores)[2])
    throw Malformed("boxes and scores do not fit");
  Detections sizes{(*boxes)[0], (*scores)[1], (*boxes)[1], (*boxes)[1]};
  if (node.known(2))
    sizes.slots = std::clamp<std::int64_t>(node.integer(2, "the number of boxes"), 0, sizes.boxes);
  else if (!node.has(2))
    sizes.slots = 0;
  return sizes;
}

/// An input with one element as a scalar.
static Tensor scalarInput(Node &node, std::size_t input) { return reshapedTo(node, node.tensor(input), {}); }

/// The boxes of each class and batch in the order of their scores, [batches, classes, slots]; -1: none is left. Each step
/// of the scan takes one, and replaces the scores of boxes that overlap it by NaN, the least for argmax.
static Tensor selectedBoxes(Node &node, const Detections &sizes) {
  Boxes boxes = boxesOf(node.tensor(0), node.integer("center_point_box", 0) != 0);
  Tensor threshold = node.has(3) ? scalarInput(node, 3) : node.scalar(0, f32);
  Tensor scores = node.tensor(1), slot = node.graph().arange(double(sizes.slots));
  if (node.has(4))
    scores = where(scores > scalarInput(node, 4), scores, NAN);
  Tensor most = node.known(2) ? Tensor() : scalarInput(node, 2);
  Tensor place = node.graph().arange(double(sizes.boxes));
  auto step = [&](const std::vector<Tensor> &carried, const std::vector<Tensor> &slices) {
    const Tensor &left = carried[0];
    Tensor best = argmax(left, 2, /*keepdim=*/true, i64), isFound = !isnan(take_along_dim(left, best, 2));
    if (most)
      isFound = isFound & (slices[0] < most);
    Tensor isGone = (place == best) | overlap(boxes.at(best), boxes, threshold);
    return ScanStep{{where(isGone, NAN, left)}, {where(isFound, best, -1.0).squeeze({2})}};
  };
  return scan({scores}, {slot}, 0, step).stacked.front().permute({1, 2, 0});
}

/// The number of a batch or a class, once for each slot.
static Tensor countedRows(Node &node, const Detections &sizes, std::int64_t size, std::int64_t axis) {
  std::vector<Size> shape(3, {1, 0});
  shape[std::size_t(axis)] = {size, 0};
  Tensor numbers = reshapedTo(node, node.graph().arange(double(size)), shape);
  return numbers.expand({sizes.batches, sizes.classes, sizes.slots}).reshape({sizes.rows()});
}

/// Rows (batch, class, box), of which the graph has as many as there can be: after those of the selected boxes, all
/// numbers are -1.
void nonMaxSuppression(Node &node) {
  Detections sizes = detectionsOf(node);
  if (sizes.slots == 0 || sizes.rows() == 0)
    return node.set(0, emptyValue(ElementType::i64, {0, 3}));
  if (sizes.rows() > std::int64_t(1) << 30)
    Node::fail("up to " + std::to_string(sizes.rows()) + " selected boxes are not supported");
  Tensor box = selectedBoxes(node, sizes).reshape({sizes.rows()});
  Tensor batch = countedRows(node, sizes, sizes.batches, 0), kind = countedRows(node, sizes, sizes.classes, 1);
  Tensor rows = stack({batch, kind, box}, 1);
  if (sizes.batches * sizes.classes > 1)
    rows = rows.index_select(0, argsort((box < 0.0).to(i32), 0)); // stable
  node.set(0, where(rows.slice(1, 2) < 0.0, -1.0, rows));
}

} // namespace sluice::onnx
