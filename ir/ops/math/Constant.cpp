// Constants, and values that depend only on a shape or a label.
#include "ir/Dialect.h"
#include "ir/build/Lane.h"
#include "ir/build/Node.h"
#include "ir/ops/Inference.h"
#include "ir/ops/model/Init.h"

using namespace mlir;

namespace sluice::ir {

//===- full ------------------------------------------------------------------------------------------------------===//

LogicalResult FullOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands, DictionaryAttr attributes,
                                       OpaqueProperties properties, RegionRange, SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  auto type = cast<RankedTensorType>(op.getType());
  if (failed(addResult(loc, type.getShape(), type.getElementType(), types)))
    return failure();
  if (double value = op.getValue().convertToDouble(); !holds(type.getElementType(), value))
    return inferenceFailure(loc, value, " is not a value of ", type.getElementType());
  return success();
}

SmallVector<HostTensor> FullOp::evaluate(ArrayRef<HostTensor>, int64_t rows) {
  return {HostTensor(runtimeShape(getY().getType(), rows), getValue().convertToDouble())};
}

Value FullOp::buildInShape(OpBuilder &builder, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, cast<RankedTensorType>(getType()).getElementType());
  return builder.create<FullOp>(getLoc(), getValue(), type);
}

Value FullOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr>) {
  return builder.constant(getValue().convertToDouble(), getLaneElement(elementOf(getY())));
}

//===- iota ------------------------------------------------------------------------------------------------------===//

LogicalResult IotaOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands, DictionaryAttr attributes,
                                       OpaqueProperties properties, RegionRange, SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  auto type = cast<RankedTensorType>(op.getType());
  Type element = type.getElementType();
  int64_t axis = op.getAxis();
  if (failed(addResult(loc, type.getShape(), element, types)) || failed(checkAxes(loc, axis, type.getShape())))
    return failure();
  if (!isa<FloatType>(element) && !element.isSignlessInteger(32) && !element.isSignlessInteger(64))
    return inferenceFailure(loc, "counts in floats, i32 or i64, not in ", element);
  double start = op.getStart().convertToDouble(), step = op.getStep().convertToDouble();
  int64_t last = type.isDynamicDim(axis) ? 0 : type.getDimSize(axis) - 1;
  for (double value : {start, step, start + step * double(last)})
    if (!holds(element, value))
      return inferenceFailure(loc, value, " is not a value of ", element);
  return success();
}

SmallVector<HostTensor> IotaOp::evaluate(ArrayRef<HostTensor>, int64_t rows) {
  HostTensor y(runtimeShape(getY().getType(), rows));
  forEachIndex(y.shape, [&](ArrayRef<int64_t> index) {
    y.at(index) = getStart().convertToDouble() + getStep().convertToDouble() * double(index[getAxis()]);
  });
  return {y};
}

Value IotaOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  Type element = getLaneElement(elementOf(getY()));
  bool isFloat = isa<FloatType>(element);
  Type counted = isFloat ? Type(builder.builder().getI64Type()) : element;
  Lane place(builder.builder(), builder.loc(), builder.materialize(index[getAxis()], counted));
  if (isFloat)
    place = castTo(place, builder.builder().getF64Type(), /*fromUnsigned=*/false, /*toUnsigned=*/false);
  Lane value = place * getStep().convertToDouble() + getStart().convertToDouble();
  return castTo(value, element, /*fromUnsigned=*/false, /*toUnsigned=*/false);
}

//===- constant --------------------------------------------------------------------------------------------------===//

LogicalResult ConstantOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                           DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                           SmallVectorImpl<Type> &types) {
  auto value = dyn_cast<DenseElementsAttr>(Adaptor(operands, attributes, properties).getValue());
  auto type = value ? dyn_cast<RankedTensorType>(value.getType()) : RankedTensorType();
  if (!type)
    return inferenceFailure(loc, "a constant needs dense elements of a tensor");
  return addResult(loc, type.getShape(), type.getElementType(), types);
}

static SmallVector<double> readElements(DenseElementsAttr value, size_t count) {
  SmallVector<double> numbers;
  auto type = dyn_cast<IntegerType>(value.getElementType());
  for (size_t i = 0; i < count; ++i) {
    if (!type)
      numbers.push_back(value.getValues<APFloat>()[i].convertToDouble());
    else
      numbers.push_back(
          value.getValues<APInt>()[i].roundToDouble(/*isSigned=*/!type.isUnsigned() && type.getWidth() > 1));
  }
  return numbers;
}

SmallVector<HostTensor> ConstantOp::evaluate(ArrayRef<HostTensor>, int64_t rows) {
  auto value = cast<DenseElementsAttr>(getValue());
  HostTensor y(runtimeShape(getY().getType(), rows));
  if (value.isSplat())
    y.data.assign(y.data.size(), readElements(value, 1)[0]);
  else
    llvm::copy(readElements(value, y.data.size()), y.data.begin());
  return {y};
}

/// Only a splat is a formula; other constants are data.
Value ConstantOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr>) {
  auto value = cast<DenseElementsAttr>(getValue());
  if (!value.isSplat())
    return Value();
  return builder.constant(readElements(value, 1)[0], getLaneElement(elementOf(getY())));
}

//===- rows ------------------------------------------------------------------------------------------------------===//

LogicalResult RowsOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands, DictionaryAttr attributes,
                                       OpaqueProperties properties, RegionRange, SmallVectorImpl<Type> &types) {
  return addResult(loc, {}, Adaptor(operands, attributes, properties).getTo(), types);
}

SmallVector<HostTensor> RowsOp::evaluate(ArrayRef<HostTensor>, int64_t rows) { return {HostTensor({}, double(rows))}; }

Value RowsOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr>) {
  return builder.rows(getLaneElement(getTo()));
}

SmallVector<Value> RowsOp::expandForReplicas(OpBuilder &builder, const RowNumbers &rows) {
  return {castTo(Node(builder, getLoc(), rows.all()), getTo())};
}

//===- one_hot ---------------------------------------------------------------------------------------------------===//

LogicalResult OneHotOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                         DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                         SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  if (failed(checkNumbers(loc, "classes", int64_t(op.getClasses()), 1, 1)))
    return failure();
  SmallVector<int64_t> shape(shapeOf(op.getLabel()));
  shape.push_back(op.getClasses());
  return addResult(loc, shape, op.getTo(), types);
}

SmallVector<HostTensor> OneHotOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  HostTensor y(runtimeShape(getY().getType(), rows));
  int64_t classes = getClasses();
  for (auto [row, label] : llvm::enumerate(operands[0].data))
    if (label >= 0 && label < double(classes))
      y.data[row * classes + int64_t(label)] = 1;
  return {y};
}

SmallVector<int64_t> OneHotOp::getIndexBounds() { return {int64_t(getClasses())}; }

Value OneHotOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  Lane label(builder.builder(), builder.loc(), builder.operand(0, index.drop_back()));
  Lane place(builder.builder(), builder.loc(), builder.materialize(index.back(), elementOf(getLabel())));
  Lane one(builder.builder(), builder.loc(), builder.constant(1, getLaneElement(elementOf(getY()))));
  return where(label == place, one, 0.0);
}

} // namespace sluice::ir
