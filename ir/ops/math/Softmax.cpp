// Softmax along an axis, its logarithm, and the cross-entropy of a softmax and a label.
#include "ir/Dialect.h"
#include "ir/build/Fold.h"
#include "ir/build/Lane.h"
#include "ir/build/Node.h"
#include "ir/ops/Inference.h"
#include "mlir/IR/PatternMatch.h"
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

// Ignores NaN, which reaches the sum in any case; `max` would have to test for it at every element.
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

/// A line along the rows requires all rows of a call.
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

/// Logits and the axis of their classes, whose number is static.
static LogicalResult checkLogits(MaybeLocation loc, Value logits, int64_t axis) {
  if (failed(checkFloats(loc, logits)) || failed(checkAxes(loc, axis, shapeOf(logits))))
    return failure();
  if (ShapedType::isDynamic(shapeOf(logits)[axis]))
    return inferenceFailure(loc, "the number of classes cannot be ?: ", printShape(shapeOf(logits)));
  return success();
}

static SmallVector<int64_t> withoutAxis(ArrayRef<int64_t> shape, int64_t axis) {
  SmallVector<int64_t> others(shape);
  others.erase(others.begin() + axis);
  return others;
}

/// The index of class `at` of an element in the logits.
static SmallVector<AffineExpr> insertAxis(ArrayRef<AffineExpr> index, int64_t axis, AffineExpr at) {
  SmallVector<AffineExpr> inserted(index);
  inserted.insert(inserted.begin() + axis, at);
  return inserted;
}

/// Moves the last dimension to `axis`; the others keep their order.
static Node moveLast(Node x, int64_t axis) {
  int64_t last = x.type().getRank() - 1;
  if (axis == last)
    return x;
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, last));
  order.insert(order.begin() + axis, last);
  return Node(*x.builder, x.loc, x.builder->create<TransposeOp>(x.loc, x, order));
}

/// The transposition of a cross-entropy's logits that moves only the classes, or null.
template <typename Op> static TransposeOp movedClasses(Op op) {
  auto transpose = op.getLogits().template getDefiningOp<TransposeOp>();
  if (!transpose || !canTakeIn(op, transpose) ||
      !llvm::is_sorted(withoutAxis(transpose.getPermutation(), op.getAxis())))
    return TransposeOp();
  return transpose;
}

LogicalResult SoftmaxCrossEntropyOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                                      DictionaryAttr attributes, OpaqueProperties properties,
                                                      RegionRange, SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  if (failed(checkLogits(loc, op.getLogits(), op.getAxis())))
    return failure();
  ArrayRef<int64_t> logits = shapeOf(op.getLogits()), label = shapeOf(op.getLabel());
  if (label != ArrayRef(withoutAxis(logits, op.getAxis())))
    return inferenceFailure(loc, "labels need the logits' dimensions but that of the classes, ", op.getAxis(), ": ",
                            printShape(logits), " and ", printShape(label));
  if (!elementOf(op.getLabel()).isSignlessInteger(32) && !elementOf(op.getLabel()).isSignlessInteger(64))
    return inferenceFailure(loc, "labels are i32 or i64; got ", elementOf(op.getLabel()));
  return addResult(loc, label, elementOf(op.getLogits()), types);
}

// A label out of range selects a logit of 0, like one_hot's row of zeros.
SmallVector<HostTensor> SoftmaxCrossEntropyOp::evaluate(ArrayRef<HostTensor> operands, int64_t) {
  const HostTensor &logits = operands[0], &label = operands[1];
  int64_t axis = getAxis();
  HostTensor logSoftmax = evaluateLogSoftmax(logits, axis), y(label.shape);
  size_t line = 0;
  forEachLine(logits, axis, [&](size_t first, size_t stride) {
    double picked = label.data[line], &result = y.data[line++];
    if (picked >= 0 && picked < double(logits.shape[axis]))
      result = -logSoftmax.data[first + size_t(picked) * stride];
    else
      result = logits.data[first] - logSoftmax.data[first];
  });
  return {y};
}

Value SoftmaxCrossEntropyOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  Type element = elementOf(getLogits());
  int64_t axis = getAxis(), classes = shapeOf(getLogits())[axis];
  auto lane = [&](Value value) { return Lane(builder.builder(), builder.loc(), value); };
  auto load = [&](AffineExpr at) { return builder.operand(0, insertAxis(index, axis, at)); };
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
  int64_t axis = getAxis(), classes = logits.type().getShape()[axis];
  Node softmax(builder, getLoc(), builder.create<SoftmaxOp>(getLoc(), logits, axis));
  Node oneHot(builder, getLoc(), builder.create<OneHotOp>(getLoc(), getLabel(), classes, element));
  return {castTo((softmax - moveLast(oneHot, axis)) * expandOver(dY, axis, logits.type()), elementOf(getLogits())),
          Value()};
}

SmallVector<int64_t> SoftmaxCrossEntropyOp::getIndexBounds() { return {0, shapeOf(getLogits())[getAxis()]}; }

// Absorbs a transposition of the classes, so that logits are read in place.
static LogicalResult takeInTranspose(SoftmaxCrossEntropyOp op, PatternRewriter &rewriter) {
  TransposeOp transpose = movedClasses(op);
  if (!transpose)
    return failure();
  rewriter.modifyOpInPlace(op, [&] {
    op.setAxis(transpose.getPermutation()[op.getAxis()]);
    op.getLogitsMutable().assign(transpose.getX());
  });
  return success();
}

void SoftmaxCrossEntropyOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add<SoftmaxCrossEntropyOp>(takeInTranspose);
}

SmallVector<Sample> SoftmaxCrossEntropyOp::samples() {
  return {{"\"sluice.softmax_cross_entropy\"(%0, %1) : (tensor<?x5xf64>, tensor<?xi32>) -> tensor<?xf64>",
           {{-2, 2}, {0, 5}}},
          {"\"sluice.softmax_cross_entropy\"(%0, %1) : (tensor<4x3xf64>, tensor<4xi64>) -> tensor<4xf64>",
           {{-2, 2}, {0, 3}}},
          {"\"sluice.softmax_cross_entropy\"(%0, %1) : (tensor<?x4x3x2xf64>, tensor<?x3x2xi32>) -> tensor<?x3x2xf64>",
           {{-2, 2}, {0, 4}}},
          {"\"sluice.softmax_cross_entropy\"(%0, %1) {axis = 2 : i64} : (tensor<?x2x4xf64>, tensor<?x2xi32>) -> "
           "tensor<?x2xf64>",
           {{-2, 2}, {0, 4}}},
          {"\"sluice.softmax_cross_entropy\"(%0, %1) {axis = 0 : i64} : (tensor<3x?xf64>, tensor<?xi64>) -> "
           "tensor<?xf64>",
           {{-2, 2}, {0, 3}}}};
}

//===- soft_cross_entropy ----------------------------------------------------------------------------------------===//

LogicalResult SoftCrossEntropyOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                                   DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                                   SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  if (failed(checkLogits(loc, op.getLogits(), op.getAxis())) || failed(checkFloats(loc, operands)))
    return failure();
  ArrayRef<int64_t> logits = shapeOf(op.getLogits()), target = shapeOf(op.getTarget());
  if (target != logits)
    return inferenceFailure(loc, "logits and target differ in shape: ", printShape(logits), " and ",
                            printShape(target));
  return addResult(loc, withoutAxis(logits, op.getAxis()), elementOf(op.getLogits()), types);
}

SmallVector<HostTensor> SoftCrossEntropyOp::evaluate(ArrayRef<HostTensor> operands, int64_t) {
  const HostTensor &logits = operands[0], &target = operands[1];
  int64_t axis = getAxis();
  HostTensor logSoftmax = evaluateLogSoftmax(logits, axis), y(withoutAxis(logits.shape, axis));
  size_t line = 0;
  forEachLine(logits, axis, [&](size_t first, size_t stride) {
    double &result = y.data[line++];
    for (size_t at = first, end = first + size_t(logits.shape[axis]) * stride; at < end; at += stride)
      result -= target.data[at] * logSoftmax.data[at];
  });
  return {y};
}

Value SoftCrossEntropyOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  Type element = elementOf(getLogits());
  int64_t axis = getAxis(), classes = shapeOf(getLogits())[axis];
  auto load = [&](unsigned operand, AffineExpr at) {
    return Lane(builder.builder(), builder.loc(), builder.operand(operand, insertAxis(index, axis, at)));
  };
  Line line(builder, classes, element, [&](AffineExpr at) -> Value { return load(0, at); });
  Lane logTotal = log(line.total);
  return fold(builder, classes, element, 0, addLanes, [&](ArrayRef<AffineExpr> at) -> Value {
    return load(1, at[0]) * (logTotal + (line.maximum - load(0, at[0])));
  });
}

SmallVector<Value> SoftCrossEntropyOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  Node logits = widened(Node(builder, getLoc(), getLogits())), target = widened(Node(builder, getLoc(), getTarget())),
       dY = widened(Node(builder, getLoc(), dResults[0]));
  int64_t axis = getAxis();
  Node softmax(builder, getLoc(), builder.create<SoftmaxOp>(getLoc(), logits, axis)),
      logSoftmax(builder, getLoc(), builder.create<LogSoftmaxOp>(getLoc(), logits, axis));
  Node all = expandOver(sum(target, axis), axis, logits.type()), each = expandOver(dY, axis, logits.type());
  return {castTo((softmax * all - target) * each, elementOf(getLogits())),
          castTo(-logSoftmax * each, elementOf(getTarget()))};
}

static LogicalResult takeInTranspose(SoftCrossEntropyOp op, PatternRewriter &rewriter) {
  TransposeOp transpose = movedClasses(op);
  if (!transpose)
    return failure();
  SmallVector<int64_t> back(transpose.getPermutation().size());
  for (auto [dim, source] : llvm::enumerate(transpose.getPermutation()))
    back[source] = int64_t(dim);
  auto type = RankedTensorType::get(shapeOf(transpose.getX()), elementOf(op.getTarget()),
                                    tensorOf(op.getTarget()).getEncoding());
  Value target = rewriter.create<TransposeOp>(op.getLoc(), type, op.getTarget(), back);
  rewriter.modifyOpInPlace(op, [&] {
    op.setAxis(transpose.getPermutation()[op.getAxis()]);
    op.getLogitsMutable().assign(transpose.getX());
    op.getTargetMutable().assign(target);
  });
  return success();
}

void SoftCrossEntropyOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  patterns.add<SoftCrossEntropyOp>(takeInTranspose);
}

SmallVector<Sample> SoftCrossEntropyOp::samples() {
  auto sample = [](const std::string &axis, const std::string &x, const std::string &y) {
    return Sample{"\"sluice.soft_cross_entropy\"(%0, %1) {axis = " + axis + " : i64} : (tensor<" + x +
                      "xf64>, tensor<" + x + "xf64>) -> tensor<" + y + "xf64>",
                  {{-2, 2}, {-0.5, 1}}};
  };
  return {sample("1", "?x5", "?"), sample("1", "?x4x3", "?x3"), sample("2", "2x3x4", "2x3")};
}

} // namespace sluice::ir
