// Convolutions. Their gradients are also convolutions.
#include "ir/Dialect.h"
#include "ir/ops/Inference.h"
#include "ir/ops/product/Window.h"
#include "ir/reference/Permuted.h"
#include "ir/reference/Products.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace sluice::ir {

/// Images are rows, and the gradient of a weight is a sum over them.
RowFlow Conv2dOp::getRowFlow() { return RowFlow::Apart; }
RowFlow Conv2dInputGradOp::getRowFlow() { return RowFlow::Apart; }
RowFlow Conv2dWeightGradOp::getRowFlow() { return RowFlow::Sum; }

//===- conv2d ----------------------------------------------------------------------------------------------------===//

/// Checks shared by convolution and its gradients: x [N, C, H, W], weight [O, C / groups, kH, kW], y [N, O, H', W'].
static LogicalResult checkConvolution(MaybeLocation loc, ArrayRef<int64_t> x, ArrayRef<int64_t> weight, int64_t groups,
                                      ArrayRef<int64_t> stride, ArrayRef<int64_t> padding, ArrayRef<int64_t> dilation) {
  if (llvm::is_contained(x.drop_front(), ShapedType::kDynamic) || llvm::is_contained(weight, ShapedType::kDynamic))
    return inferenceFailure(loc, "only the first dimension of a convolution's input may be ?: ", printShape(x), " * ",
                            printShape(weight));
  if (groups < 1 || x[1] % groups != 0 || weight[0] % groups != 0)
    return inferenceFailure(loc, "groups do not divide the channels: ", groups, " groups in ", printShape(x), " * ",
                            printShape(weight));
  if (x[1] / groups != weight[1])
    return inferenceFailure(loc, "input channels differ: ", x[1] / groups, " and ", weight[1], " in ", printShape(x),
                            " * ", printShape(weight));
  return checkWindows(loc, x.drop_front(2), weight.drop_front(2), stride, padding, dilation);
}

static SmallVector<int64_t> getConvolvedShape(ArrayRef<int64_t> x, ArrayRef<int64_t> weight, const Windows &windows) {
  return {x[0], weight[0], windows[0].positions(), windows[1].positions()};
}

static LogicalResult checkConvolved(MaybeLocation loc, ArrayRef<int64_t> dy, ArrayRef<int64_t> expected) {
  if (dy == expected)
    return success();
  return inferenceFailure(loc, "dY differs in shape from the convolution's result: ", printShape(dy), " and ",
                          printShape(expected));
}

/// Products of a convolution that share an element of x: y[y + k] += x[x] * weight[weight + k] for k < count, with y
/// [N, H', W', O] and weight [C / groups, kH, kW, O].
struct ProductRow {
  int64_t x, weight, y, count;
};

/// Orders for permuted(): weights with the output channels last, and back; y with the channels last, and back.
static constexpr int64_t kOutputsLast[] = {1, 2, 3, 0}, kOutputsFirst[] = {3, 0, 1, 2};
static constexpr int64_t kChannelsLast[] = {0, 2, 3, 1}, kChannelsSecond[] = {0, 3, 1, 2};

/// Calls `body` with every ProductRow, so that all products that a convolution sums appear once. `x` and `weight` are
/// the shapes of the op.
template <typename Body>
static void forEachProductRow(ArrayRef<int64_t> x, ArrayRef<int64_t> weight, const Windows &windows, int64_t groups,
                              Body body) {
  int64_t height = windows[0].positions(), width = windows[1].positions();
  int64_t outputs = weight[0], channels = weight[1], count = outputs / groups;
  for (int64_t n = 0; n < x[0]; ++n)
    for (int64_t channel = 0; channel < x[1]; ++channel)
      for (int64_t u = 0; u < weight[2]; ++u)
        for (int64_t v = 0; v < weight[3]; ++v) {
          auto [first, end] = windows[1].positionsWith(v);
          int64_t output = channel / channels * count;
          int64_t row = ((channel % channels * weight[2] + u) * weight[3] + v) * outputs + output;
          for (int64_t i = 0; i < height; ++i)
            if (int64_t h = windows[0].element(i, u); windows[0].holds(h))
              for (int64_t j = first; j < end; ++j)
                body(ProductRow{((n * x[1] + channel) * x[2] + h) * x[3] + windows[1].element(j, v), row,
                                ((n * height + i) * width + j) * outputs + output, count});
        }
}

/// Twice the number of products in all ProductRows, which have no padding, as (constant part, part per row).
static std::pair<int64_t, int64_t> countProducts(ArrayRef<int64_t> y, ArrayRef<int64_t> weight,
                                                 const Windows &windows) {
  return countFlops({y.take_front(2), weight[1], windows[0].countTaps(), windows[1].countTaps()});
}

LogicalResult Conv2dOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                         DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                         SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  if (failed(checkFloats(loc, operands)) || failed(checkRank(loc, "x", op.getX(), 4)) ||
      failed(checkRank(loc, "weight", op.getWeight(), 4)))
    return failure();
  ArrayRef<int64_t> x = shapeOf(op.getX()), weight = shapeOf(op.getWeight());
  if (failed(checkConvolution(loc, x, weight, op.getGroups(), op.getStride(), op.getPadding(), op.getDilation())))
    return failure();
  Windows windows =
      getWindows(x.drop_front(2), weight.drop_front(2), op.getStride(), op.getPadding(), op.getDilation());
  return addResult(loc, getConvolvedShape(x, weight, windows), elementOf(op.getX()), types);
}

SmallVector<HostTensor> Conv2dOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  const HostTensor &x = operands[0], &weight = operands[1];
  Windows windows = getWindows(ArrayRef(x.shape).drop_front(2), ArrayRef(weight.shape).drop_front(2), getStride(),
                               getPadding(), getDilation());
  SmallVector<int64_t> shape = runtimeShape(getY().getType(), rows);
  HostTensor y({shape[0], shape[2], shape[3], shape[1]}), w = permuted(weight, kOutputsLast);
  forEachProductRow(x.shape, weight.shape, windows, getGroups(), [&](const ProductRow &row) {
    addProducts(&y.data[row.y], &x.data[row.x], 0, &w.data[row.weight], 1, row.count);
  });
  return {permuted(y, kChannelsSecond)};
}

SmallVector<Value> Conv2dOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  ArrayRef<int64_t> size = shapeOf(getX()).drop_front(2), kernel = shapeOf(getWeight()).drop_front(2);
  Value dX = builder.create<Conv2dInputGradOp>(getLoc(), dResults[0], getWeight(), size, getStride(), getPadding(),
                                               getDilation(), getGroups());
  Value dWeight = builder.create<Conv2dWeightGradOp>(getLoc(), getX(), dResults[0], kernel, getStride(), getPadding(),
                                                     getDilation(), getGroups());
  return {dX, dWeight};
}

SmallVector<Sample> Conv2dOp::samples() {
  std::pair<double, double> range{-1, 1};
  auto sample = [&](const std::string &stride, const std::string &padding, const std::string &dilation,
                    const std::string &groups, const char *type) {
    return Sample{"\"sluice.conv2d\"(%0, %1) {stride = array<i64: " + stride + ">, padding = array<i64: " + padding +
                      ">, dilation = array<i64: " + dilation + ">, groups = " + groups + " : i64} : " + type,
                  {range, range}};
  };
  return {
      sample("1, 1", "0, 0, 0, 0", "1, 1", "1", "(tensor<?x2x5x6xf64>, tensor<3x2x3x2xf64>) -> tensor<?x3x3x5xf64>"),
      sample("2, 3", "1, 0, 2, 1", "1, 1", "1", "(tensor<2x3x5x6xf64>, tensor<2x3x3x3xf64>) -> tensor<2x2x3x2xf64>"),
      sample("1, 2", "2, 1, 1, 1", "2, 1", "1", "(tensor<1x2x5x6xf64>, tensor<2x2x3x3xf64>) -> tensor<1x2x4x3xf64>"),
      sample("1, 1", "1, 1, 1, 1", "1, 1", "2", "(tensor<2x4x3x3xf64>, tensor<6x2x3x3xf64>) -> tensor<2x6x3x3xf64>"),
      sample("2, 2", "0, 0, 0, 0", "1, 1", "3", "(tensor<2x3x4x5xf64>, tensor<3x1x2x2xf64>) -> tensor<2x3x2x2xf64>")};
}

std::pair<int64_t, int64_t> Conv2dOp::getFlops() {
  return countProducts(shapeOf(getY()), shapeOf(getWeight()),
                       getWindows(shapeOf(getX()).drop_front(2), shapeOf(getWeight()).drop_front(2), getStride(),
                                  getPadding(), getDilation()));
}

//===- conv2d_input_grad -----------------------------------------------------------------------------------------===//

LogicalResult Conv2dInputGradOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                                  DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                                  SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  int64_t groups = op.getGroups();
  if (failed(checkFloats(loc, operands)) || failed(checkRank(loc, "dY", op.getDy(), 4)) ||
      failed(checkRank(loc, "weight", op.getWeight(), 4)) || failed(checkNumbers(loc, "size", op.getSize(), 2, 1)) ||
      failed(checkNumbers(loc, "groups", groups, 1, 1)))
    return failure();
  ArrayRef<int64_t> dy = shapeOf(op.getDy()), weight = shapeOf(op.getWeight());
  int64_t channels;
  if (llvm::MulOverflow(weight[1], groups, channels))
    return inferenceFailure(loc, "too many channels: ", weight[1], " x ", groups);
  SmallVector<int64_t> x{dy[0], channels, op.getSize()[0], op.getSize()[1]};
  if (failed(checkConvolution(loc, x, weight, groups, op.getStride(), op.getPadding(), op.getDilation())))
    return failure();
  Windows windows = getWindows(op.getSize(), weight.drop_front(2), op.getStride(), op.getPadding(), op.getDilation());
  if (failed(checkConvolved(loc, dy, getConvolvedShape(x, weight, windows))))
    return failure();
  return addResult(loc, x, elementOf(op.getDy()), types);
}

SmallVector<HostTensor> Conv2dInputGradOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  const HostTensor &dy = operands[0], &weight = operands[1];
  Windows windows =
      getWindows(getSize(), ArrayRef(weight.shape).drop_front(2), getStride(), getPadding(), getDilation());
  HostTensor dx(runtimeShape(getDx().getType(), rows));
  HostTensor dys = permuted(dy, kChannelsLast), w = permuted(weight, kOutputsLast);
  forEachProductRow(dx.shape, weight.shape, windows, getGroups(), [&](const ProductRow &row) {
    for (int64_t k = 0; k < row.count; ++k)
      dx.data[row.x] += dys.data[row.y + k] * w.data[row.weight + k];
  });
  return {dx};
}

SmallVector<Value> Conv2dInputGradOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  ArrayRef<int64_t> kernel = shapeOf(getWeight()).drop_front(2);
  Value dDy = builder.create<Conv2dOp>(getLoc(), dResults[0], getWeight(), getStride(), getPadding(), getDilation(),
                                       getGroups());
  Value dWeight = builder.create<Conv2dWeightGradOp>(getLoc(), dResults[0], getDy(), kernel, getStride(), getPadding(),
                                                     getDilation(), getGroups());
  return {dDy, dWeight};
}

SmallVector<Sample> Conv2dInputGradOp::samples() {
  auto sample = [](const std::string &attributes, const std::string &types) {
    return Sample{"\"sluice.conv2d_input_grad\"(%0, %1) {" + attributes + " : i64} : " + types, {{-1, 1}, {-1, 1}}};
  };
  return {sample("size = array<i64: 5, 6>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = "
                 "array<i64: 1, 1>, groups = 1",
                 "(tensor<?x3x3x5xf64>, tensor<3x2x3x2xf64>) -> tensor<?x2x5x6xf64>"),
          sample("size = array<i64: 5, 6>, stride = array<i64: 2, 3>, padding = array<i64: 1, 0, 2, 1>, dilation = "
                 "array<i64: 1, 1>, groups = 1",
                 "(tensor<2x2x3x2xf64>, tensor<2x3x3x3xf64>) -> tensor<2x3x5x6xf64>"),
          sample("size = array<i64: 5, 6>, stride = array<i64: 1, 2>, padding = array<i64: 2, 1, 1, 1>, dilation = "
                 "array<i64: 2, 1>, groups = 1",
                 "(tensor<1x2x4x3xf64>, tensor<2x2x3x3xf64>) -> tensor<1x2x5x6xf64>"),
          sample("size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = "
                 "array<i64: 1, 1>, groups = 2",
                 "(tensor<2x6x3x3xf64>, tensor<6x2x3x3xf64>) -> tensor<2x4x3x3xf64>")};
}

std::pair<int64_t, int64_t> Conv2dInputGradOp::getFlops() {
  return countProducts(
      shapeOf(getDy()), shapeOf(getWeight()),
      getWindows(getSize(), shapeOf(getWeight()).drop_front(2), getStride(), getPadding(), getDilation()));
}

//===- conv2d_weight_grad ----------------------------------------------------------------------------------------===//

LogicalResult Conv2dWeightGradOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                                   DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                                   SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  int64_t groups = op.getGroups();
  if (failed(checkFloats(loc, operands)) || failed(checkRank(loc, "x", op.getX(), 4)) ||
      failed(checkRank(loc, "dY", op.getDy(), 4)) || failed(checkNumbers(loc, "size", op.getSize(), 2, 1)) ||
      failed(checkNumbers(loc, "groups", groups, 1, 1)))
    return failure();
  ArrayRef<int64_t> x = shapeOf(op.getX()), dy = shapeOf(op.getDy());
  SmallVector<int64_t> weight{dy[1], x[1] / groups, op.getSize()[0], op.getSize()[1]};
  if (failed(checkConvolution(loc, x, weight, groups, op.getStride(), op.getPadding(), op.getDilation())))
    return failure();
  Windows windows = getWindows(x.drop_front(2), op.getSize(), op.getStride(), op.getPadding(), op.getDilation());
  if (failed(checkConvolved(loc, dy, getConvolvedShape(x, weight, windows))))
    return failure();
  return addResult(loc, weight, elementOf(op.getX()), types);
}

SmallVector<HostTensor> Conv2dWeightGradOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  const HostTensor &x = operands[0], &dy = operands[1];
  Windows windows = getWindows(ArrayRef(x.shape).drop_front(2), getSize(), getStride(), getPadding(), getDilation());
  SmallVector<int64_t> weight = runtimeShape(getDweight().getType(), rows);
  HostTensor dweight({weight[1], weight[2], weight[3], weight[0]}), dys = permuted(dy, kChannelsLast);
  forEachProductRow(x.shape, weight, windows, getGroups(), [&](const ProductRow &row) {
    addProducts(&dweight.data[row.weight], &x.data[row.x], 0, &dys.data[row.y], 1, row.count);
  });
  return {permuted(dweight, kOutputsFirst)};
}

SmallVector<Value> Conv2dWeightGradOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  Value dX = builder.create<Conv2dInputGradOp>(getLoc(), getDy(), dResults[0], shapeOf(getX()).drop_front(2),
                                               getStride(), getPadding(), getDilation(), getGroups());
  Value dDy =
      builder.create<Conv2dOp>(getLoc(), getX(), dResults[0], getStride(), getPadding(), getDilation(), getGroups());
  return {dX, dDy};
}

SmallVector<Sample> Conv2dWeightGradOp::samples() {
  auto sample = [](const std::string &attributes, const std::string &types) {
    return Sample{"\"sluice.conv2d_weight_grad\"(%0, %1) {" + attributes + " : i64} : " + types, {{-1, 1}, {-1, 1}}};
  };
  return {sample("size = array<i64: 3, 2>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = "
                 "array<i64: 1, 1>, groups = 1",
                 "(tensor<?x2x5x6xf64>, tensor<?x3x3x5xf64>) -> tensor<3x2x3x2xf64>"),
          sample("size = array<i64: 3, 3>, stride = array<i64: 2, 3>, padding = array<i64: 1, 0, 2, 1>, dilation = "
                 "array<i64: 1, 1>, groups = 1",
                 "(tensor<2x3x5x6xf64>, tensor<2x2x3x2xf64>) -> tensor<2x3x3x3xf64>"),
          sample("size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = "
                 "array<i64: 1, 1>, groups = 2",
                 "(tensor<2x4x3x3xf64>, tensor<2x6x3x3xf64>) -> tensor<6x2x3x3xf64>")};
}

std::pair<int64_t, int64_t> Conv2dWeightGradOp::getFlops() {
  return countProducts(shapeOf(getDy()), shapeOf(getDweight()),
                       getWindows(shapeOf(getX()).drop_front(2), getSize(), getStride(), getPadding(), getDilation()));
}

} // namespace sluice::ir
