// Softmax along an axis, its logarithm, and the cross-entropy of a softmax and a label.
#include "ir/Dialect.h"
#include "ir/build/Fold.h"
#include "ir/build/Lane.h"
#include "ir/build/Node.h"
#include "ir/ops/Inference.h"
#include <cmath>

using namespace mlir;

namespace sluice::ir {

//===- softmax, log_softmax --------------------------------------------------------------------------------------===//

static LogicalResult inferSoftmax(MaybeLocation loc, Value x, int64_t axis, SmallVectorImpl<Type> &types) {
  if (failed(checkFloats(loc, x)) || failed(checkAxes(loc, axis, shapeOf(x))))
    return failure();
  return addResult(loc, shapeOf(x), elementOf(x), types);
}

/// Calls `body` with the offset of the first element and the stride of every line of x along `axis`.
static void forEachLine(const HostTensor &x, int64_t axis, llvm::function_ref<void(size_t, size_t)> body) {
  SmallVector<int64_t> firsts(x.shape);
  firsts[axis] = std::min<int64_t>(1, firsts[axis]);
  size_t stride = 1;
  for (int64_t size : ArrayRef(x.shape).drop_front(axis + 1))
    stride *= size_t(size);
  forEachIndex(firsts, [&](ArrayRef<int64_t> index) { body(x.offset(index), stride); });
}

/// log(softmax) in double precision.
static HostTensor evaluateLogSoftmax(const HostTensor &x, int64_t axis) {
  HostTensor y = x;
  forEachLine(x, axis, [&](size_t first, size_t stride) {
    double maximum = -kInfinity, total = 0;
    size_t end = first + size_t(x.shape[axis]) * stride;
    for (size_t at = first; at < end; at += stride)
      maximum = std::fmax(maximum, x.data[at]);
    for (size_t at = first; at < end; at += stride)
      total += std::exp(x.data[at] - maximum);
    for (size_t at = first; at < end; at += stride)
      y.data[at] = x.data[at] - maximum - std::log(total);
  });
  return y;
}

/// `index` with `at` along `axis`.
static SmallVector<AffineExpr> withAxis(ArrayRef<AffineExpr> index, int64_t axis, AffineExpr at) {
  SmallVector<AffineExpr> source(index);
  source[axis] = at;
  return source;
}

// Never a NaN, which is in the sum in any case: `max` would have to look for it at every element.
static Lane larger(Lane a, Lane b) { return where(b > a, b, a); }

namespace {

/// The maximum along a line of x and the sum of exp(x - maximum), as values.
struct Line {
  Lane maximum, total;

  Line(ElementBuilder &builder, int64_t size, Type element, llvm::function_ref<Value(AffineExpr)> load)
      : maximum(builder.builder(), builder.loc(),
                fold(builder, size, element, -kInfinity, larger, [&](ArrayRef<AffineExpr> at) { return load(at[0]); })),
        total(builder.builder(), builder.loc(),
              fold(builder, size, element, 0, addLanes, [&](ArrayRef<AffineExpr> at) -> Value {
                return exp(Lane(builder.builder(), builder.loc(), load(at[0])) - maximum);
              })) {}
};

} // namespace

template <typename Op> static Line buildLine(Op op, ElementBuilder &builder, ArrayRef<AffineExpr> index) {
  int64_t axis = op.getAxis();
  return Line(builder, shapeOf(op.getX())[axis], elementOf(op.getX()),
              [&](AffineExpr at) { return builder.operand(0, withAxis(index, axis, at)); });
}

static SmallVector<Sample> softmaxSamples(const std::string &mnemonic) {
  return {{"\"sluice." + mnemonic + "\"(%0) {axis = 1 : i64} : (tensor<?x5xf64>) -> tensor<?x5xf64>", {{-2, 2}}},
          {"\"sluice." + mnemonic + "\"(%0) {axis = 0 : i64} : (tensor<4x3xf64>) -> tensor<4x3xf64>", {{-2, 2}}}};
}

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                          DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                          SmallVectorImpl<Type> &types) {
  return inferSoftmax(loc, operands[0], Adaptor(operands, attributes, properties).getAxis(), types);
}

SmallVector<HostTensor> SoftmaxOp::evaluate(ArrayRef<HostTensor> operands, int64_t) {
  HostTensor y = evaluateLogSoftmax(operands[0], getAxis());
  for (double &element : y.data)
    element = std::exp(element);
  return {y};
}

/// A line of rows is looked at as a whole.
template <typename Op> static RowFlow flowOfLines(Op op) {
  return tensorOf(op.getX()).isDynamicDim(op.getAxis()) ? RowFlow::Whole : RowFlow::Apart;
}
RowFlow SoftmaxOp::getRowFlow() { return flowOfLines(*this); }
RowFlow LogSoftmaxOp::getRowFlow() { return flowOfLines(*this); }

Value SoftmaxOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  Line line = buildLine(*this, builder, index);
  return exp(Lane(builder.builder(), builder.loc(), builder.operand(0, index)) - line.maximum) / line.total;
}

SmallVector<Value> SoftmaxOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  Node y = widened(Node(builder, getLoc(), getY())), dY = widened(Node(builder, getLoc(), dResults[0]));
  int64_t axis = getAxis();
  return {castTo(y * (dY - expandOver(sum(dY * y, axis), axis, y.type())), elementOf(getX()))};
}

SmallVector<Sample> SoftmaxOp::samples() { return softmaxSamples("softmax"); }

LogicalResult LogSoftmaxOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                             DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                             SmallVectorImpl<Type> &types) {
  return inferSoftmax(loc, operands[0], Adaptor(operands, attributes, properties).getAxis(), types);
}

SmallVector<HostTensor> LogSoftmaxOp::evaluate(ArrayRef<HostTensor> operands, int64_t) {
  return {evaluateLogSoftmax(operands[0], getAxis())};
}

Value LogSoftmaxOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  Line line = buildLine(*this, builder, index);
  return Lane(builder.builder(), builder.loc(), builder.operand(0, index)) - line.maximum - log(line.total);
}

SmallVector<Value> LogSoftmaxOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  Node y = widened(Node(builder, getLoc(), getY())), dY = widened(Node(builder, getLoc(), dResults[0]));
  int64_t axis = getAxis();
  return {castTo(dY - exp(y) * expandOver(sum(dY, axis), axis, y.type()), elementOf(getX()))};
}

SmallVector<Sample> LogSoftmaxOp::samples() { return softmaxSamples("log_softmax"); }

//===- softmax_cross_entropy -------------------------------------------------------------------------------------===//

LogicalResult SoftmaxCrossEntropyOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                                      DictionaryAttr, OpaqueProperties, RegionRange,
                                                      SmallVectorImpl<Type> &types) {
  if (failed(checkFloats(loc, operands[0])) || failed(checkRank(loc, "logits", operands[0], 2)) ||
      failed(checkRank(loc, "label", operands[1], 1)))
    return failure();
  ArrayRef<int64_t> logits = shapeOf(operands[0]), label = shapeOf(operands[1]);
  if (logits[0] != label[0])
    return inferenceFailure(loc, "logits and labels differ in rows: ", printShape(logits), " and ", printShape(label));
  if (ShapedType::isDynamic(logits[1]))
    return inferenceFailure(loc, "the number of classes cannot be ?: ", printShape(logits));
  if (!elementOf(operands[1]).isSignlessInteger(32) && !elementOf(operands[1]).isSignlessInteger(64))
    return inferenceFailure(loc, "labels are i32 or i64; got ", elementOf(operands[1]));
  return addResult(loc, label, elementOf(operands[0]), types);
}

// A label out of range picks a logit of 0, as one_hot's row of zeros does.
SmallVector<HostTensor> SoftmaxCrossEntropyOp::evaluate(ArrayRef<HostTensor> operands, int64_t) {
  const HostTensor &logits = operands[0], &label = operands[1];
  HostTensor logSoftmax = evaluateLogSoftmax(logits, 1), y(label.shape);
  int64_t classes = logits.shape[1];
  for (int64_t row = 0; row < label.size(); ++row) {
    double picked = label.data[row];
    if (picked >= 0 && picked < double(classes))
      y.data[row] = -logSoftmax.data[row * classes + int64_t(picked)];
    else if (classes > 0)
      y.data[row] = logits.data[row * classes] - logSoftmax.data[row * classes];
  }
  return {y};
}

Value SoftmaxCrossEntropyOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  Type element = elementOf(getLogits());
  int64_t classes = shapeOf(getLogits())[1];
  auto lane = [&](Value value) { return Lane(builder.builder(), builder.loc(), value); };
  auto load = [&](AffineExpr at) { return builder.operand(0, {index[0], at}); };
  Line line(builder, classes, element, load);
  Lane label = lane(builder.operand(1, index));
  Lane picked = lane(fold(builder, classes, element, 0, addLanes, [&](ArrayRef<AffineExpr> at) -> Value {
    return where(label == lane(builder.materialize(at[0], elementOf(getLabel()))), lane(load(at[0])), 0.0);
  }));
  return log(line.total) + (line.maximum - picked);
}

SmallVector<Value> SoftmaxCrossEntropyOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  Node logits = widened(Node(builder, getLoc(), getLogits())), dY = widened(Node(builder, getLoc(), dResults[0]));
  Type element = logits.type().getElementType();
  Node softmax(builder, getLoc(), builder.create<SoftmaxOp>(getLoc(), logits, 1));
  Node picked(builder, getLoc(), builder.create<OneHotOp>(getLoc(), getLabel(), logits.type().getShape()[1], element));
  return {castTo((softmax - picked) * expandOver(dY, 1, logits.type()), elementOf(getLogits())), Value()};
}

SmallVector<int64_t> SoftmaxCrossEntropyOp::getIndexBounds() { return {0, shapeOf(getLogits())[1]}; }

SmallVector<Sample> SoftmaxCrossEntropyOp::samples() {
  return {{"\"sluice.softmax_cross_entropy\"(%0, %1) : (tensor<?x5xf64>, tensor<?xi32>) -> tensor<?xf64>",
           {{-2, 2}, {0, 5}}},
          {"\"sluice.softmax_cross_entropy\"(%0, %1) : (tensor<4x3xf64>, tensor<4xi64>) -> tensor<4xf64>",
           {{-2, 2}, {0, 3}}}};
}

} // namespace sluice::ir
