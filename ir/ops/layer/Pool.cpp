// Pooling over windows, and its gradients.
#include "ir/Dialect.h"
#include "ir/build/Fold.h"
#include "ir/build/Lane.h"
#include "ir/build/Node.h"
#include "ir/build/WindowFormula.h"
#include "ir/ops/Inference.h"
#include <cmath>
#include <utility>

using namespace mlir;

namespace sluice::ir {

static constexpr int64_t kNoDilation[] = {1, 1};

static ArrayRef<int64_t> spatial(Value value) { return shapeOf(value).drop_front(2); }

static SmallVector<int64_t> getPooledShape(ArrayRef<int64_t> x, const Windows &windows, bool ceil) {
  return {x[0], x[1], windows[0].positions(ceil), windows[1].positions(ceil)};
}

/// Calls `body` with each tap of window (i, j) that is not padding: the tap's number and the element's indices.
static void forEachTap(const Windows &windows, int64_t i, int64_t j,
                       llvm::function_ref<void(int64_t, int64_t, int64_t)> body) {
  for (int64_t u = 0; u < windows[0].kernel; ++u)
    for (int64_t v = 0; v < windows[1].kernel; ++v) {
      int64_t h = windows[0].element(i, u), w = windows[1].element(j, v);
      if (windows[0].holds(h) && windows[1].holds(w))
        body(u * windows[1].kernel + v, h, w);
    }
}

/// Checks dY's shape. If the op does not specify the rounding of the last window, both are valid.
static LogicalResult checkPooled(MaybeLocation loc, ArrayRef<int64_t> dy, const Windows &windows,
                                 ArrayRef<bool> roundings) {
  for (bool ceil : roundings)
    if (dy.drop_front(2) == ArrayRef<int64_t>{windows[0].positions(ceil), windows[1].positions(ceil)})
      return success();
  SmallVector<int64_t> expected = getPooledShape(dy, windows, roundings[0]);
  return inferenceFailure(loc, "dY differs in shape from the pool's result: ", printShape(dy), " and ",
                          printShape(expected));
}

static LogicalResult checkPool(MaybeLocation loc, Value value, ArrayRef<int64_t> size, ArrayRef<int64_t> kernel,
                               ArrayRef<int64_t> stride, ArrayRef<int64_t> padding, ArrayRef<int64_t> dilation,
                               bool ceil) {
  if (failed(checkFloats(loc, value)) || failed(checkRank(loc, "a pool's operand", value, 4)))
    return failure();
  if (llvm::is_contained(shapeOf(value).drop_front(), ShapedType::kDynamic))
    return inferenceFailure(loc, "only the first dimension of a pool may be ?: ", printShape(shapeOf(value)));
  if (failed(checkWindows(loc, size, kernel, stride, padding, dilation, ceil)))
    return failure();
  for (const Window &window : getWindows(size, kernel, stride, padding, dilation))
    if (std::max(window.before, window.after) >= window.extent())
      return inferenceFailure(loc, "a window would hold only padding: padding ", std::max(window.before, window.after),
                              " and kernel ", window.extent());
  return success();
}

/// Sums `term(candidates of height and width, conditions)` over the windows that contain the element at `index`.
static Value sumOverWindows(ElementBuilder &builder, const Windows &windows, ArrayRef<int64_t> counts, Type element,
                            ArrayRef<AffineExpr> index,
                            llvm::function_ref<Value(Candidate, Candidate, const Guard &)> term) {
  auto build = [&](ArrayRef<AffineExpr> inner) {
    Guard guard;
    Candidate row = placeCandidate(windows[0], counts[0], index[2], inner[0], guard),
              column = placeCandidate(windows[1], counts[1], index[3], inner[1], guard);
    return term(row, column, guard);
  };
  int64_t extents[] = {countCandidates(windows[0]), countCandidates(windows[1])};
  if (extents[0] == 1 && extents[1] == 1)
    return build({builder.constantIndex(0), builder.constantIndex(0)});
  return fold(builder, extents, element, 0, addLanes, build);
}

//===- max_pool2d ------------------------------------------------------------------------------------------------===//

static LogicalResult checkPlaces(MaybeLocation loc, ArrayRef<int64_t> kernel) {
  if (kernel[0] <= 256 && kernel[1] <= 256 && kernel[0] * kernel[1] <= 256)
    return success();
  return inferenceFailure(loc, "a maximum's place in a window is one byte: the kernel ", printShape(kernel),
                          " is too large");
}

LogicalResult MaxPool2dOp::inferReturnTypes(MLIRContext *context, MaybeLocation loc, ValueRange operands,
                                            DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                            SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  if (failed(checkRank(loc, "a pool's operand", op.getX(), 4)) ||
      failed(checkPool(loc, op.getX(), spatial(op.getX()), op.getKernel(), op.getStride(), op.getPadding(),
                       op.getDilation(), op.getCeilMode())) ||
      failed(checkPlaces(loc, op.getKernel())))
    return failure();
  Windows windows = getWindows(spatial(op.getX()), op.getKernel(), op.getStride(), op.getPadding(), op.getDilation());
  SmallVector<int64_t> shape = getPooledShape(shapeOf(op.getX()), windows, op.getCeilMode());
  return failure(failed(addResult(loc, shape, elementOf(op.getX()), types)) ||
                 failed(addResult(loc, shape, IntegerType::get(context, 8, IntegerType::Unsigned), types)));
}

SmallVector<HostTensor> MaxPool2dOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  Windows windows = getWindows(spatial(getX()), getKernel(), getStride(), getPadding(), getDilation());
  HostTensor y(runtimeShape(getY().getType(), rows), -kInfinity), place(y.shape);
  forEachIndex(y.shape, [&](ArrayRef<int64_t> index) {
    bool isFirst = true;
    forEachTap(windows, index[2], index[3], [&](int64_t tap, int64_t h, int64_t w) {
      double value = operands[0].at({index[0], index[1], h, w});
      if (std::exchange(isFirst, false) || value > y.at(index) || std::isnan(value)) {
        y.at(index) = value;
        place.at(index) = double(tap);
      }
    });
  });
  return {y, place};
}

/// The first tap of a window that is not padding, along one dimension.
static Lane buildFirstTap(ElementBuilder &builder, const Window &window, AffineExpr position) {
  Lane padding(builder.builder(), builder.loc(),
               builder.materialize(window.before - position * window.stride, builder.builder().getI32Type()));
  return max(window.dilation == 1 ? padding : (padding + double(window.dilation - 1)) / double(window.dilation), 0.0);
}

Value MaxPool2dOp::buildElement(ElementBuilder &builder, unsigned result, ArrayRef<AffineExpr> index) {
  Windows windows = getWindows(spatial(getX()), getKernel(), getStride(), getPadding(), getDilation());
  Type element = elementOf(getX()), i32 = builder.builder().getI32Type();
  Value least = builder.constant(-kInfinity, element);
  auto lane = [&](Value value) { return Lane(builder.builder(), builder.loc(), value); };
  auto load = [&](ArrayRef<AffineExpr> tap) {
    Guard guard;
    SmallVector<AffineExpr> source(index);
    for (unsigned dim : {0u, 1u})
      source[dim + 2] = placeTap(windows[dim], spatial(getY())[dim], index[dim + 2], tap[dim], guard);
    return guard.load(builder, [&builder, source] { return builder.operand(0, source); }, least);
  };
  if (result == 0)
    return fold(builder, getKernel(), element, -kInfinity, max, load);
  auto combine = [&](ValueRange a, ValueRange b) -> SmallVector<Value> {
    Lane maximum = lane(a[0]), place = lane(a[1]), other = lane(b[0]), otherPlace = lane(b[1]);
    Lane taken = (other > maximum) | ((other == maximum) & (otherPlace < place));
    return {where(taken, other, maximum), where(taken, otherPlace, place)};
  };
  auto step = [&](ArrayRef<AffineExpr> tap, ValueRange sofar) -> SmallVector<Value> {
    Lane maximum = lane(sofar[0]), place = lane(sofar[1]), value = lane(load(tap));
    Lane taken = value > maximum;
    return {where(taken, value, maximum),
            where(taken, lane(builder.materialize(tap[0] * windows[1].kernel + tap[1], i32)), place)};
  };
  Value initial[] = {least, builder.constant(0, i32)};
  SmallVector<Value> found = builder.reduce(getKernel(), initial, step, combine);
  Lane place = lane(found[1]);
  if (windows[0].before > 0 || windows[1].before > 0) {
    Lane first = buildFirstTap(builder, windows[0], index[2]) * double(windows[1].kernel) +
                 buildFirstTap(builder, windows[1], index[3]);
    place = where(lane(found[0]) == -kInfinity, first, place); // all elements equal the padding, -inf
  }
  return castTo(place, elementOf(getPlace()), false, true);
}

SmallVector<Value> MaxPool2dOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  if (!dResults[0])
    return {Value()};
  return {builder.create<MaxPool2dGradOp>(getLoc(), dResults[0], getPlace(), spatial(getX()), getKernel(), getStride(),
                                          getPadding(), getDilation())};
}

SmallVector<Sample> MaxPool2dOp::samples() {
  auto sample = [](const std::string &attributes, const std::string &x, const std::string &y) {
    return Sample{"\"sluice.max_pool2d\"(%0) {" + attributes + "} : (tensor<" + x + "xf64>) -> (tensor<" + y +
                      "xf64>, tensor<" + y + "xui8>)",
                  {{-2, 2}}};
  };
  return {sample("kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilation = "
                 "array<i64: 1, 1>",
                 "?x2x4x4", "?x2x2x2"),
          sample("kernel = array<i64: 3, 2>, stride = array<i64: 2, 1>, padding = array<i64: 1, 1, 0, 0>, dilation = "
                 "array<i64: 1, 1>, ceil_mode",
                 "2x1x5x4", "2x1x3x4"),
          sample("kernel = array<i64: 2, 3>, stride = array<i64: 1, 2>, padding = array<i64: 1, 0, 1, 0>, dilation = "
                 "array<i64: 2, 1>",
                 "1x2x4x5", "1x2x4x2"),
          sample("kernel = array<i64: 3, 4>, stride = array<i64: 2, 3>, padding = array<i64: 0, 0, 0, 0>, dilation = "
                 "array<i64: 1, 1>, ceil_mode",
                 "?x1x2x2", "?x1x1x1"),
          sample("kernel = array<i64: 4, 3>, stride = array<i64: 2, 1>, padding = array<i64: 0, 2, 3, 1>, dilation = "
                 "array<i64: 1, 1>, ceil_mode",
                 "2x1x4x3", "2x1x2x4")};
}

//===- max_pool2d_grad -------------------------------------------------------------------------------------------===//

LogicalResult MaxPool2dGradOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                                DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                                SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  if (failed(checkPool(loc, op.getDy(), op.getSize(), op.getKernel(), op.getStride(), op.getPadding(), op.getDilation(),
                       /*ceil=*/true)) ||
      failed(checkPlaces(loc, op.getKernel())))
    return failure();
  ArrayRef<int64_t> dy = shapeOf(op.getDy());
  if (shapeOf(op.getPlace()) != dy)
    return inferenceFailure(loc, "dY and the places differ in shape: ", printShape(dy), " and ",
                            printShape(shapeOf(op.getPlace())));
  Windows windows = getWindows(op.getSize(), op.getKernel(), op.getStride(), op.getPadding(), op.getDilation());
  if (failed(checkPooled(loc, dy, windows, {false, true})))
    return failure();
  return addResult(loc, {dy[0], dy[1], op.getSize()[0], op.getSize()[1]}, elementOf(op.getDy()), types);
}

SmallVector<HostTensor> MaxPool2dGradOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  Windows windows = getWindows(getSize(), getKernel(), getStride(), getPadding(), getDilation());
  HostTensor dx(runtimeShape(getDx().getType(), rows));
  forEachIndex(operands[0].shape, [&](ArrayRef<int64_t> index) {
    forEachTap(windows, index[2], index[3], [&](int64_t tap, int64_t h, int64_t w) {
      if (tap == int64_t(operands[1].at(index)))
        dx.at({index[0], index[1], h, w}) += operands[0].at(index);
    });
  });
  return {dx};
}

Value MaxPool2dGradOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  Windows windows = getWindows(getSize(), getKernel(), getStride(), getPadding(), getDilation());
  Type element = elementOf(getDy()), byte = builder.builder().getI8Type();
  auto lane = [&](Value value) { return Lane(builder.builder(), builder.loc(), value); };
  Value zero = builder.constant(0, element);
  return sumOverWindows(
      builder, windows, spatial(getDy()), element, index, [&](Candidate row, Candidate column, const Guard &guard) {
        auto load = [&builder, lane, byte,
                     source = SmallVector<AffineExpr>{index[0], index[1], row.position, column.position},
                     tap = row.tap * windows[1].kernel + column.tap]() -> Value {
          Lane chosen = lane(builder.operand(1, source)) == lane(builder.materialize(tap, byte));
          return where(chosen, lane(builder.operand(0, source)), 0.0);
        };
        return guard.load(builder, load, zero);
      });
}

// The gradient of dY is the gradient of dX at the place of the maximum.
SmallVector<Value> MaxPool2dGradOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  Windows windows = getWindows(getSize(), getKernel(), getStride(), getPadding(), getDilation());
  Node place = castTo(Node(builder, getLoc(), getPlace()), builder.getI32Type());
  auto element = [&](unsigned dim, Node tap) {
    Node start(builder, getLoc(),
               builder.create<IotaOp>(getLoc(), APFloat(double(-windows[dim].before)),
                                      APFloat(double(windows[dim].stride)), dim + 2, withoutEncoding(place.type())));
    return start + tap * double(windows[dim].dilation);
  };
  Node row = place / double(windows[1].kernel), column = place - row * double(windows[1].kernel);
  Node elements[] = {element(0, row), element(1, column)};
  Node index = elements[0] * double(getSize()[1]) + elements[1];
  ArrayRef<int64_t> dy = shapeOf(getDy());
  Node dDx = reshape(Node(builder, getLoc(), dResults[0]), {dy[0], dy[1], getSize()[0] * getSize()[1]});
  Node taken(builder, getLoc(),
             builder.create<TakeAlongOp>(getLoc(), dDx, reshape(index, {dy[0], dy[1], dy[2] * dy[3]}), /*axis=*/2));
  Node dDy = reshape(taken, dy);
  for (unsigned dim : {0u, 1u})
    if (getSize()[dim] < getDilation()[dim]) // a window may have no element
      dDy = where(elements[dim] >= 0.0, where(elements[dim] < double(getSize()[dim]), dDy, 0.0), 0.0);
  return {dDy, Value()};
}

SmallVector<Sample> MaxPool2dGradOp::samples() {
  return {
      {"\"sluice.max_pool2d_grad\"(%0, %1) {size = array<i64: 4, 5>, kernel = array<i64: 2, 2>, stride = array<i64: 2, "
       "1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>} : (tensor<?x2x2x4xf64>, "
       "tensor<?x2x2x4xui8>) -> tensor<?x2x4x5xf64>",
       {{-2, 2}, {0, 4}}},
      {"\"sluice.max_pool2d_grad\"(%0, %1) {size = array<i64: 5, 4>, kernel = array<i64: 2, 3>, stride = array<i64: 1, "
       "1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 2, 1>} : (tensor<2x1x3x2xf64>, "
       "tensor<2x1x3x2xui8>) -> tensor<2x1x5x4xf64>",
       {{-2, 2}, {0, 6}}},
      {"\"sluice.max_pool2d_grad\"(%0, %1) {size = array<i64: 1, 5>, kernel = array<i64: 2, 2>, stride = array<i64: 1, "
       "1>, padding = array<i64: 1, 0, 1, 0>, dilation = array<i64: 2, 1>} : (tensor<2x1x1x4xf64>, "
       "tensor<2x1x1x4xui8>) -> tensor<2x1x1x5xf64>",
       {{-2, 2}, {0, 4}}}};
}

//===- avg_pool2d ------------------------------------------------------------------------------------------------===//

/// The number of elements along one dimension that a window's mean counts: those of the input, and the padding if
/// `includePad`, but none beyond the padding.
static int64_t countElements(const Window &window, int64_t position, bool includePad) {
  int64_t start = window.element(position, 0);
  int64_t end = std::min(start + window.kernel, window.size + (includePad ? window.after : 0));
  return end - std::max(start, includePad ? -window.before : 0);
}

/// `countElements` as a value: a constant if all windows have the same number.
static Lane buildCount(ElementBuilder &builder, const Window &window, int64_t count, AffineExpr position,
                       bool includePad, Type element) {
  Lane whole(builder.builder(), builder.loc(), builder.constant(double(window.kernel), element));
  if (countElements(window, 0, includePad) == window.kernel &&
      countElements(window, count - 1, includePad) == window.kernel)
    return whole;
  Type i32 = builder.builder().getI32Type();
  Lane start(builder.builder(), builder.loc(), builder.materialize(position * window.stride - window.before, i32));
  Lane end = min(start + double(window.kernel), double(window.size + (includePad ? window.after : 0)));
  return castTo(end - max(start, includePad ? double(-window.before) : 0.0), element, false, false);
}

LogicalResult AvgPool2dOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                            DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                            SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  if (failed(checkRank(loc, "a pool's operand", op.getX(), 4)) ||
      failed(checkPool(loc, op.getX(), spatial(op.getX()), op.getKernel(), op.getStride(), op.getPadding(), kNoDilation,
                       op.getCeilMode())))
    return failure();
  Windows windows = getWindows(spatial(op.getX()), op.getKernel(), op.getStride(), op.getPadding(), kNoDilation);
  return addResult(loc, getPooledShape(shapeOf(op.getX()), windows, op.getCeilMode()), elementOf(op.getX()), types);
}

SmallVector<HostTensor> AvgPool2dOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  Windows windows = getWindows(spatial(getX()), getKernel(), getStride(), getPadding(), kNoDilation);
  HostTensor y(runtimeShape(getY().getType(), rows));
  forEachIndex(y.shape, [&](ArrayRef<int64_t> index) {
    double total = 0;
    forEachTap(windows, index[2], index[3],
               [&](int64_t, int64_t h, int64_t w) { total += operands[0].at({index[0], index[1], h, w}); });
    y.at(index) = total / double(countElements(windows[0], index[2], getCountIncludePad()) *
                                 countElements(windows[1], index[3], getCountIncludePad()));
  });
  return {y};
}

Value AvgPool2dOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  Windows windows = getWindows(spatial(getX()), getKernel(), getStride(), getPadding(), kNoDilation);
  Type element = elementOf(getX());
  Value zero = builder.constant(0, element);
  Value total = fold(builder, getKernel(), element, 0, addLanes, [&](ArrayRef<AffineExpr> tap) {
    Guard guard;
    SmallVector<AffineExpr> source(index);
    for (unsigned dim : {0u, 1u})
      source[dim + 2] = placeTap(windows[dim], spatial(getY())[dim], index[dim + 2], tap[dim], guard);
    return guard.load(builder, [&builder, source] { return builder.operand(0, source); }, zero);
  });
  auto count = [&](unsigned dim) {
    return buildCount(builder, windows[dim], spatial(getY())[dim], index[dim + 2], getCountIncludePad(), element);
  };
  return Lane(builder.builder(), builder.loc(), total) / (count(0) * count(1));
}

SmallVector<Value> AvgPool2dOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  return {builder.create<AvgPool2dGradOp>(getLoc(), dResults[0], spatial(getX()), getKernel(), getStride(),
                                          getPadding(), getCeilMode(), getCountIncludePad())};
}

SmallVector<Sample> AvgPool2dOp::samples() {
  auto sample = [](const std::string &attributes, const std::string &x, const std::string &y) {
    return Sample{"\"sluice.avg_pool2d\"(%0) {" + attributes + "} : (tensor<" + x + "xf64>) -> tensor<" + y + "xf64>",
                  {{-2, 2}}};
  };
  return {sample("kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>", "?x2x4x4",
                 "?x2x2x2"),
          sample("kernel = array<i64: 3, 2>, stride = array<i64: 2, 1>, padding = array<i64: 1, 1, 1, 0>", "2x1x5x4",
                 "2x1x3x4"),
          sample("kernel = array<i64: 3, 3>, stride = array<i64: 2, 2>, padding = array<i64: 1, 0, 1, 1>, ceil_mode, "
                 "count_include_pad",
                 "1x2x6x5", "1x2x4x3"),
          sample("kernel = array<i64: 3, 3>, stride = array<i64: 2, 2>, padding = array<i64: 0, 1, 0, 1>, ceil_mode",
                 "1x2x6x5", "1x2x3x3"),
          sample("kernel = array<i64: 3, 4>, stride = array<i64: 2, 3>, padding = array<i64: 0, 0, 0, 0>, ceil_mode, "
                 "count_include_pad",
                 "?x1x2x2", "?x1x1x1"),
          sample("kernel = array<i64: 4, 3>, stride = array<i64: 2, 1>, padding = array<i64: 0, 2, 3, 1>", "2x1x4x3",
                 "2x1x2x4")};
}

//===- avg_pool2d_grad -------------------------------------------------------------------------------------------===//

LogicalResult AvgPool2dGradOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                                DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                                SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  if (failed(checkPool(loc, op.getDy(), op.getSize(), op.getKernel(), op.getStride(), op.getPadding(), kNoDilation,
                       op.getCeilMode())))
    return failure();
  ArrayRef<int64_t> dy = shapeOf(op.getDy());
  if (failed(checkPooled(loc, dy,
                         getWindows(op.getSize(), op.getKernel(), op.getStride(), op.getPadding(), kNoDilation),
                         op.getCeilMode())))
    return failure();
  return addResult(loc, {dy[0], dy[1], op.getSize()[0], op.getSize()[1]}, elementOf(op.getDy()), types);
}

SmallVector<HostTensor> AvgPool2dGradOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  Windows windows = getWindows(getSize(), getKernel(), getStride(), getPadding(), kNoDilation);
  HostTensor dx(runtimeShape(getDx().getType(), rows));
  forEachIndex(operands[0].shape, [&](ArrayRef<int64_t> index) {
    double share = operands[0].at(index) / double(countElements(windows[0], index[2], getCountIncludePad()) *
                                                  countElements(windows[1], index[3], getCountIncludePad()));
    forEachTap(windows, index[2], index[3],
               [&](int64_t, int64_t h, int64_t w) { dx.at({index[0], index[1], h, w}) += share; });
  });
  return {dx};
}

Value AvgPool2dGradOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  Windows windows = getWindows(getSize(), getKernel(), getStride(), getPadding(), kNoDilation);
  Type element = elementOf(getDy());
  ArrayRef<int64_t> counts = spatial(getDy());
  bool includePad = getCountIncludePad();
  Value zero = builder.constant(0, element);
  return sumOverWindows(
      builder, windows, counts, element, index, [&](Candidate row, Candidate column, const Guard &guard) {
        auto load = [&builder, windows, counts, includePad, element, row, column,
                     source = SmallVector<AffineExpr>{index[0], index[1], row.position, column.position}]() -> Value {
          Lane dy(builder.builder(), builder.loc(), builder.operand(0, source));
          return dy / (buildCount(builder, windows[0], counts[0], row.position, includePad, element) *
                       buildCount(builder, windows[1], counts[1], column.position, includePad, element));
        };
        return guard.load(builder, load, zero);
      });
}

SmallVector<Value> AvgPool2dGradOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  return {builder.create<AvgPool2dOp>(getLoc(), dResults[0], getKernel(), getStride(), getPadding(), getCeilMode(),
                                      getCountIncludePad())};
}

SmallVector<Sample> AvgPool2dGradOp::samples() {
  return {
      {"\"sluice.avg_pool2d_grad\"(%0) {size = array<i64: 5, 4>, kernel = array<i64: 3, 2>, stride = array<i64: 2, 1>, "
       "padding = array<i64: 1, 1, 1, 0>} : (tensor<?x1x3x4xf64>) -> tensor<?x1x5x4xf64>",
       {{-2, 2}}},
      {"\"sluice.avg_pool2d_grad\"(%0) {size = array<i64: 4, 3>, kernel = array<i64: 4, 3>, stride = array<i64: 2, 1>, "
       "padding = array<i64: 0, 2, 3, 1>} : (tensor<2x1x2x4xf64>) -> tensor<2x1x4x3xf64>",
       {{-2, 2}}}};
}

} // namespace sluice::ir
