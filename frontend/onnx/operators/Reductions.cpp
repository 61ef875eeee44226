// Reductions.
#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Casting.h"
#include "frontend/onnx/operators/Moving.h"
#include "frontend/onnx/operators/Sizes.h"
#include "sluice/formulas.h"
#include "sluice/ops.h"

#include <algorithm>
#include <limits>

namespace sluice::onnx {

namespace {

/// The dimensions that a node reduces.
struct Reduced {
  std::vector<std::int64_t> axes; ///< sorted
  bool keeps;
};

} // namespace

/// Axes: an attribute before a version, and then an input. None: all, or with noop_with_empty_axes none.
static Reduced reducedDims(Node &node, std::int64_t inputSince) {
  std::int64_t rank = node.rank(0);
  Reduced reduced{{}, node.integer("keepdims", 1) != 0};
  if (node.opset() < inputSince)
    reduced.axes = node.integers("axes");
  else if (node.has(1))
    reduced.axes = node.integers(1, "axes");
  for (std::int64_t &axis : reduced.axes)
    axis = Node::axisOf(axis, rank);
  std::ranges::sort(reduced.axes);
  if (std::ranges::adjacent_find(reduced.axes) != reduced.axes.end())
    throw Malformed("an axis is given twice");
  if (reduced.axes.empty() && node.integer("noop_with_empty_axes", 0) == 0)
    for (std::int64_t i = 0; i < rank; ++i)
      reduced.axes.push_back(i);
  return reduced;
}

/// The result of a reduction of no elements.
static void setReducedNothing(Node &node, const Reduced &reduced, double identity) {
  Dims dims;
  for (std::int64_t i = 0; i < node.rank(0); ++i) {
    bool isReduced = std::ranges::binary_search(reduced.axes, i);
    if (!isReduced || reduced.keeps)
      dims.push_back(isReduced ? 1 : node.dims(0)[std::size_t(i)]);
  }
  if (countOf(dims) == 0)
    return node.set(0, emptyValue(node.type(0), std::move(dims)));
  Known one = Known::ofReals(node.type(0), {}, {&identity, 1});
  node.set(0, Known::uniform(node.type(0), std::move(dims), {one.at(0), one.elementSize()}));
}

/// Sets the result of `reduce`, which receives floats, or integers if it `keepsIntegers`.
static void reduceBy(Node &node, std::int64_t inputSince, double identity, bool keepsIntegers,
                     Tensor (*reduce)(const Tensor &x, const Axes &axes, bool keeps)) {
  Reduced reduced = reducedDims(node, inputSince);
  if (const Known *known = node.known(0); known && known->count() == 0)
    return setReducedNothing(node, reduced, identity);
  Tensor x = node.tensor(0);
  bool isInteger = !is_float(x.dtype());
  if (isInteger && !keepsIntegers)
    x = x.to(f64);
  // The graph reduces everything if it is given no axes: a new one of size 1 is reduced instead.
  bool isNothing = reduced.axes.empty();
  Tensor y = isNothing ? reduce(unsqueeze(x, 0), 0, false) : reduce(x, reduced.axes, reduced.keeps);
  ElementType type = node.type(0);
  DType held = node.tensor(0).dtype();
  node.set(0, isInteger ? wrapped(y.to(held), type) : y, type);
}

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

#define REDUCTION(handler, inputSince, identity, keepsIntegers, formula)                                               \
  void handler(Node &node) {                                                                                           \
    reduceBy(node, inputSince, identity, keepsIntegers,                                                                \
             [](const Tensor &x, const Axes &axes, bool keeps) -> Tensor { return formula; });                         \
  }
REDUCTION(reducedSum, 13, 0, true, sum(x, axes, keeps))
REDUCTION(reducedMean, 18, std::numeric_limits<double>::quiet_NaN(), false, mean(x, axes, keeps))
REDUCTION(reducedProduct, 18, 1, true, prod(x, axes, keeps))
REDUCTION(reducedL1, 18, 0, true, sum(sluice::abs(x), axes, keeps))
REDUCTION(reducedL2, 18, 0, false, norm(x, 2, axes, keeps))
REDUCTION(reducedSquares, 18, 0, true, sum(x *x, axes, keeps))
REDUCTION(reducedLogSum, 18, -kInfinity, false, sluice::log(sum(x, axes, keeps)))
REDUCTION(reducedLogSumExp, 18, -kInfinity, false, logsumexp(x, axes, keeps))
REDUCTION(reducedMax, 18, -kInfinity, true, x.dtype() == boolean ? any(x, axes, keeps) : max(x, axes, keeps))
REDUCTION(reducedMin, 18, kInfinity, true, x.dtype() == boolean ? all(x, axes, keeps) : min(x, axes, keeps))
#undef REDUCTION

} // namespace sluice::onnx
