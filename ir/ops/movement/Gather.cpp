// Ops whose indices are data.
#include "ir/Dialect.h"
#include "ir/build/Fold.h"
#include "ir/build/Node.h"
#include "ir/ops/Inference.h"

using namespace mlir;

namespace sluice::ir {

/// `shape` with `inner` in place of `count` dimensions from `axis`.
template <typename T>
static SmallVector<T> replaceDims(ArrayRef<T> shape, int64_t axis, int64_t count, ArrayRef<T> inner) {
  SmallVector<T> replaced(shape.take_front(axis));
  llvm::append_range(replaced, inner);
  llvm::append_range(replaced, shape.drop_front(axis + count));
  return replaced;
}

static int64_t clampIndex(double index, int64_t size) {
  return index < 0 ? 0 : int64_t(std::min(index, double(size - 1)));
}

static Lane clampIndex(Lane index, int64_t size) {
  int64_t greatest = llvm::maxIntN(index.elementType().getIntOrFloatBitWidth());
  return max(min(index, double(std::min(size - 1, greatest))), 0.0);
}

//===- gather ----------------------------------------------------------------------------------------------------===//

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                         DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                         SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  ArrayRef<int64_t> x = shapeOf(op.getX()), index = shapeOf(op.getIndex());
  int64_t axis = op.getAxis();
  if (failed(checkAxes(loc, axis, x)))
    return failure();
  if (ShapedType::isDynamic(x[axis]))
    return inferenceFailure(loc, "the rows of a call cannot be indexed: axis ", axis, " of ", printShape(x));
  return addResult(loc, replaceDims(x, axis, 1, index), elementOf(op.getX()), types);
}

SmallVector<HostTensor> GatherOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  const HostTensor &x = operands[0], &index = operands[1];
  HostTensor y(runtimeShape(getY().getType(), rows));
  int64_t axis = getAxis(), count = int64_t(index.shape.size());
  forEachIndex(y.shape, [&](ArrayRef<int64_t> at) {
    int64_t chosen = clampIndex(index.at(at.slice(axis, count)), x.shape[axis]);
    y.at(at) = x.at(replaceDims<int64_t>(at, axis, count, chosen));
  });
  return {y};
}

Value GatherOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> at) {
  int64_t axis = getAxis(), count = tensorOf(getIndex()).getRank();
  AffineExpr chosen = builder.dataIndex(1, at.slice(axis, count), shapeOf(getX())[axis]);
  return builder.operand(0, replaceDims<AffineExpr>(at, axis, count, chosen));
}

// Two-byte floats are summed in f32 and rounded once.
SmallVector<Value> GatherOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  Node dY = widened(Node(builder, getLoc(), dResults[0]));
  int64_t axis = getAxis();
  Value dX = builder.create<ScatterAddOp>(getLoc(), dY, getIndex(), axis, shapeOf(getX())[axis]);
  return {castTo(Node(builder, getLoc(), dX), elementOf(getX())), Value()};
}

SmallVector<int64_t> GatherOp::getIndexBounds() { return {0, shapeOf(getX())[getAxis()]}; }

std::optional<unsigned> GatherOp::getChosenOperand() { return 0; }

bool GatherOp::isLinearIn(ArrayRef<bool> sums) { return sums[0] && !sums[1]; }

SmallVector<Sample> GatherOp::samples() {
  auto sample = [](const std::string &axis, const std::string &x, const std::string &index, const std::string &y,
                   double size) {
    return Sample{"\"sluice.gather\"(%0, %1) {axis = " + axis + " : i64} : (tensor<" + x + "xf64>, tensor<" + index +
                      ">) -> tensor<" + y + "xf64>",
                  {{-2, 2}, {0, size}}};
  };
  return {sample("0", "5x3", "?xi32", "?x3", 5),
          sample("0", "6x2", "?x4xi64", "?x4x2", 6),
          sample("1", "?x4x2", "3xi64", "?x3x2", 4),
          sample("1", "?x4", "2x3xi32", "?x2x3", 4),
          sample("0", "4x3", "i32", "3", 4),
          sample("2", "2x3x40", "5xi32", "2x3x5", 40),
          sample("0", "7x2x18", "?x2xi32", "?x2x2x18", 7)};
}

//===- scatter_add -----------------------------------------------------------------------------------------------===//

LogicalResult ScatterAddOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                             DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                             SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  ArrayRef<int64_t> x = shapeOf(op.getX()), index = shapeOf(op.getIndex());
  int64_t axis = op.getAxis(), size = op.getSize(), count = int64_t(index.size());
  if (failed(checkNumbers(loc, "size", size, 1, 1)))
    return failure();
  if (axis < 0 || axis > int64_t(x.size()) - count)
    return inferenceFailure(loc, "axis ", axis, " is none of 0 to ", int64_t(x.size()) - count, ": indices of ",
                            printShape(index), " in ", printShape(x));
  if (x.slice(axis, count) != index)
    return inferenceFailure(loc, "x needs the index's dimensions from ", axis, " on: ", printShape(x), " and ",
                            printShape(index));
  return addResult(loc, replaceDims<int64_t>(x, axis, count, size), elementOf(op.getX()), types);
}

SmallVector<HostTensor> ScatterAddOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  const HostTensor &x = operands[0], &index = operands[1];
  HostTensor y(runtimeShape(getY().getType(), rows));
  int64_t axis = getAxis(), count = int64_t(index.shape.size()), size = getSize();
  forEachIndex(x.shape, [&](ArrayRef<int64_t> at) {
    int64_t chosen = clampIndex(index.at(at.slice(axis, count)), size);
    y.at(replaceDims<int64_t>(at, axis, count, chosen)) += x.at(at);
  });
  return {y};
}

// Each element of y visits all elements of the index. Backends that recognize the op compute the same with fewer steps.
Value ScatterAddOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> at) {
  int64_t axis = getAxis(), size = getSize();
  Type element = elementOf(getX());
  auto term = [&](ArrayRef<AffineExpr> index) -> Value {
    Lane chosen = clampIndex(Lane(builder.builder(), builder.loc(), builder.operand(1, index)), size);
    Lane here(builder.builder(), builder.loc(), builder.materialize(at[axis], elementOf(getIndex())));
    Lane x(builder.builder(), builder.loc(), builder.operand(0, replaceDims(at, axis, 1, index)));
    return where(chosen == here, x, 0.0);
  };
  SmallVector<int64_t> extents = llvm::map_to_vector(shapeOf(getIndex()), [](int64_t extent) {
    return ShapedType::isDynamic(extent) ? ElementBuilder::kRows : extent;
  });
  return extents.empty() ? term({}) : sluice::ir::fold(builder, extents, element, 0, addLanes, term);
}

SmallVector<Value> ScatterAddOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  int64_t axis = getAxis();
  return {builder.create<GatherOp>(getLoc(), dResults[0], getIndex(), axis), Value()};
}

SmallVector<int64_t> ScatterAddOp::getIndexBounds() { return {0, int64_t(getSize())}; }

RowFlow ScatterAddOp::getRowFlow() { return tensorOf(getIndex()).hasStaticShape() ? RowFlow::Apart : RowFlow::Sum; }

bool ScatterAddOp::isLinearIn(ArrayRef<bool> sums) { return sums[0] && !sums[1]; }

SmallVector<Sample> ScatterAddOp::samples() {
  auto sample = [](const std::string &axis, const std::string &size, const std::string &x, const std::string &index,
                   const std::string &y, double least, double below) {
    return Sample{"\"sluice.scatter_add\"(%0, %1) {axis = " + axis + " : i64, size = " + size + " : i64} : (tensor<" +
                      x + "xf64>, tensor<" + index + ">) -> tensor<" + y + "xf64>",
                  {{-2, 2}, {least, below}}};
  };
  return {sample("0", "5", "?x3", "?xi32", "5x3", 0, 5),     sample("0", "6", "?x4x2", "?x4xi64", "6x2", 0, 6),
          sample("1", "4", "?x3x2", "3xi64", "?x4x2", 0, 4), sample("1", "4", "?x2x3", "2x3xi32", "?x4", 0, 4),
          sample("0", "4", "3", "i32", "4x3", 0, 4),         sample("2", "40", "2x3x5", "5xi32", "2x3x40", 0, 40),
          sample("0", "3", "7x40", "7xi32", "3x40", 2, 3),   sample("0", "9", "?", "?xi32", "9", 0, 9)};
}

//===- take_along ------------------------------------------------------------------------------------------------===//

/// Checks that an index has the sizes of `shape` except along the axis, and that the axis is not the rows.
static LogicalResult checkAlong(MaybeLocation loc, int64_t axis, ArrayRef<int64_t> shape, ArrayRef<int64_t> index) {
  if (failed(checkAxes(loc, axis, shape)))
    return failure();
  if (index.size() != shape.size() || replaceDims<int64_t>(index, axis, 1, shape[axis]) != SmallVector<int64_t>(shape))
    return inferenceFailure(loc, "the index needs the dimensions of ", printShape(shape), " but for axis ", axis,
                            ", not ", printShape(index));
  if (ShapedType::isDynamic(shape[axis]) || ShapedType::isDynamic(index[axis]))
    return inferenceFailure(loc, "the rows of a call cannot be indexed: axis ", axis, " of ", printShape(shape));
  return success();
}

LogicalResult TakeAlongOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                            DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                            SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  if (failed(checkAlong(loc, op.getAxis(), shapeOf(op.getX()), shapeOf(op.getIndex()))))
    return failure();
  return addResult(loc, shapeOf(op.getIndex()), elementOf(op.getX()), types);
}

SmallVector<HostTensor> TakeAlongOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  const HostTensor &x = operands[0], &index = operands[1];
  HostTensor y(runtimeShape(getY().getType(), rows));
  int64_t axis = getAxis();
  forEachIndex(y.shape, [&](ArrayRef<int64_t> at) {
    y.at(at) = x.at(replaceDims<int64_t>(at, axis, 1, clampIndex(index.at(at), x.shape[axis])));
  });
  return {y};
}

Value TakeAlongOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> at) {
  AffineExpr chosen = builder.dataIndex(1, at, shapeOf(getX())[getAxis()]);
  return builder.operand(0, replaceDims<AffineExpr>(at, getAxis(), 1, chosen));
}

// Two-byte floats are summed in f32 and rounded once.
SmallVector<Value> TakeAlongOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  Node dY = widened(Node(builder, getLoc(), dResults[0]));
  Value dX = builder.create<AddAlongOp>(getLoc(), dY, getIndex(), getAxis(), shapeOf(getX())[getAxis()]);
  return {castTo(Node(builder, getLoc(), dX), elementOf(getX())), Value()};
}

SmallVector<int64_t> TakeAlongOp::getIndexBounds() { return {0, shapeOf(getX())[getAxis()]}; }

std::optional<unsigned> TakeAlongOp::getChosenOperand() { return 0; }

bool TakeAlongOp::isLinearIn(ArrayRef<bool> sums) { return sums[0] && !sums[1]; }

SmallVector<Sample> TakeAlongOp::samples() {
  auto sample = [](const std::string &axis, const std::string &x, const std::string &index, const std::string &type,
                   double size) {
    return Sample{"\"sluice.take_along\"(%0, %1) {axis = " + axis + " : i64} : (tensor<" + x + "xf64>, tensor<" +
                      index + "x" + type + ">) -> tensor<" + index + "xf64>",
                  {{-2, 2}, {0, size}}};
  };
  return {sample("1", "?x5", "?x3", "i32", 5), sample("1", "?x4x2", "?x6x2", "i64", 4),
          sample("0", "7x?", "2x?", "i32", 7), sample("2", "2x3x40", "2x3x1", "i32", 40),
          sample("0", "4", "9", "i64", 4)};
}

//===- add_along -------------------------------------------------------------------------------------------------===//

LogicalResult AddAlongOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                           DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                           SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  ArrayRef<int64_t> x = shapeOf(op.getX());
  int64_t axis = op.getAxis(), size = op.getSize();
  if (failed(checkNumbers(loc, "size", size, 1, 1)) || failed(checkAlong(loc, axis, x, shapeOf(op.getIndex()))))
    return failure();
  if (x != shapeOf(op.getIndex()))
    return inferenceFailure(loc, "x needs the shape of the index, ", printShape(shapeOf(op.getIndex())), ", not ",
                            printShape(x));
  return addResult(loc, replaceDims<int64_t>(x, axis, 1, size), elementOf(op.getX()), types);
}

SmallVector<HostTensor> AddAlongOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  const HostTensor &x = operands[0], &index = operands[1];
  HostTensor y(runtimeShape(getY().getType(), rows));
  int64_t axis = getAxis(), size = getSize();
  forEachIndex(x.shape, [&](ArrayRef<int64_t> at) {
    y.at(replaceDims<int64_t>(at, axis, 1, clampIndex(index.at(at), size))) += x.at(at);
  });
  return {y};
}

// Each element of y collects its terms along the index, so no element has two writers.
Value AddAlongOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> at) {
  int64_t axis = getAxis(), size = getSize();
  auto term = [&](ArrayRef<AffineExpr> step) -> Value {
    SmallVector<AffineExpr> of = replaceDims<AffineExpr>(at, axis, 1, step[0]);
    Lane chosen = clampIndex(Lane(builder.builder(), builder.loc(), builder.operand(1, of)), size);
    Lane here(builder.builder(), builder.loc(), builder.materialize(at[axis], elementOf(getIndex())));
    return where(chosen == here, Lane(builder.builder(), builder.loc(), builder.operand(0, of)), 0.0);
  };
  return sluice::ir::fold(builder, shapeOf(getX())[axis], elementOf(getX()), 0, addLanes, term);
}

SmallVector<Value> AddAlongOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  return {builder.create<TakeAlongOp>(getLoc(), dResults[0], getIndex(), getAxis()), Value()};
}

SmallVector<int64_t> AddAlongOp::getIndexBounds() { return {0, int64_t(getSize())}; }

bool AddAlongOp::isLinearIn(ArrayRef<bool> sums) { return sums[0] && !sums[1]; }

SmallVector<Sample> AddAlongOp::samples() {
  auto sample = [](const std::string &axis, const std::string &size, const std::string &index, const std::string &y,
                   double below) {
    return Sample{"\"sluice.add_along\"(%0, %1) {axis = " + axis + " : i64, size = " + size + " : i64} : (tensor<" +
                      index + "xf64>, tensor<" + index + "xi32>) -> tensor<" + y + "xf64>",
                  {{-2, 2}, {0, below}}};
  };
  return {sample("1", "5", "?x3", "?x5", 5), sample("1", "4", "?x6x2", "?x4x2", 4), sample("0", "7", "2x?", "7x?", 7),
          sample("2", "40", "2x3x1", "2x3x40", 40), sample("0", "3", "9", "3", 2)};
}

//===- dynamic_slice ---------------------------------------------------------------------------------------------===//

/// Checks shared by both ops: a position along an axis of x that has at least `size` elements.
static LogicalResult checkPosition(MaybeLocation loc, Value x, Value index, int64_t axis, int64_t size) {
  ArrayRef<int64_t> shape = shapeOf(x);
  if (failed(checkAxes(loc, axis, shape)) || failed(checkNumbers(loc, "size", size, 1, 1)))
    return failure();
  if (!shapeOf(index).empty())
    return inferenceFailure(loc, "the index is a scalar, not ", printShape(shapeOf(index)));
  if (ShapedType::isDynamic(shape[axis]))
    return inferenceFailure(loc, "the rows of a call cannot be indexed: axis ", axis, " of ", printShape(shape));
  if (size > shape[axis])
    return inferenceFailure(loc, "a slice of ", size, " elements is in no dimension of ", shape[axis], ": axis ", axis,
                            " of ", printShape(shape));
  return success();
}

LogicalResult DynamicSliceOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                               DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                               SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  int64_t axis = op.getAxis(), size = op.getSize();
  if (failed(checkPosition(loc, op.getX(), op.getIndex(), axis, size)))
    return failure();
  return addResult(loc, replaceDims<int64_t>(shapeOf(op.getX()), axis, 1, size), elementOf(op.getX()), types);
}

SmallVector<HostTensor> DynamicSliceOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  const HostTensor &x = operands[0];
  HostTensor y(runtimeShape(getY().getType(), rows));
  int64_t axis = getAxis(), from = clampIndex(operands[1].at({}), getIndexBounds()[1]);
  forEachIndex(y.shape,
               [&](ArrayRef<int64_t> at) { y.at(at) = x.at(replaceDims<int64_t>(at, axis, 1, from + at[axis])); });
  return {y};
}

Value DynamicSliceOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> at) {
  int64_t axis = getAxis();
  AffineExpr from = builder.dataIndex(1, {}, getIndexBounds()[1]);
  return builder.operand(0, replaceDims<AffineExpr>(at, axis, 1, from + at[axis]));
}

SmallVector<Value> DynamicSliceOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  Node zeros = Node(builder, getLoc(), getX()).like(0.0);
  return {updatedAt(zeros, Node(builder, getLoc(), dResults[0]), getIndex(), int64_t(getAxis())), Value()};
}

SmallVector<int64_t> DynamicSliceOp::getIndexBounds() {
  return {0, shapeOf(getX())[getAxis()] - int64_t(getSize()) + 1};
}

std::optional<unsigned> DynamicSliceOp::getChosenOperand() { return 0; }

bool DynamicSliceOp::isLinearIn(ArrayRef<bool> sums) { return sums[0] && !sums[1]; }

SmallVector<Sample> DynamicSliceOp::samples() {
  auto sample = [](const std::string &axis, const std::string &size, const std::string &x, const std::string &index,
                   const std::string &y, double least, double below) {
    return Sample{"\"sluice.dynamic_slice\"(%0, %1) {axis = " + axis + " : i64, size = " + size + " : i64} : (tensor<" +
                      x + "xf64>, tensor<" + index + ">) -> tensor<" + y + "xf64>",
                  {{-2, 2}, {least, below}}};
  };
  return {sample("1", "1", "?x5x3", "i32", "?x1x3", 0, 5), sample("0", "2", "6x?x2", "i64", "2x?x2", 0, 5),
          sample("1", "3", "2x40", "i32", "2x3", 0, 38), sample("0", "4", "4x3", "i32", "4x3", 0, 1),
          sample("2", "18", "?x2x40", "i32", "?x2x18", 0, 23)};
}

//===- dynamic_update_slice --------------------------------------------------------------------------------------===//

LogicalResult DynamicUpdateSliceOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                                     DictionaryAttr attributes, OpaqueProperties properties,
                                                     RegionRange, SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  ArrayRef<int64_t> x = shapeOf(op.getX()), part = shapeOf(op.getPart());
  int64_t axis = op.getAxis();
  bool hasAxis = part.size() == x.size() && axis >= 0 && axis < int64_t(part.size());
  if (failed(checkPosition(loc, op.getX(), op.getIndex(), axis, hasAxis ? part[axis] : 1)))
    return failure();
  if (!hasAxis || part != ArrayRef<int64_t>(replaceDims<int64_t>(x, axis, 1, part[axis])))
    return inferenceFailure(loc, "the part needs x's shape but for axis ", axis, ": ", printShape(x), " and ",
                            printShape(part));
  if (elementOf(op.getX()) != elementOf(op.getPart()))
    return inferenceFailure(loc, "x and the part have two element types: ", elementOf(op.getX()), " and ",
                            elementOf(op.getPart()));
  return addResult(loc, x, elementOf(op.getX()), types);
}

SmallVector<HostTensor> DynamicUpdateSliceOp::evaluate(ArrayRef<HostTensor> operands, int64_t) {
  HostTensor y = operands[0];
  const HostTensor &part = operands[1];
  int64_t axis = getAxis(), from = clampIndex(operands[2].at({}), getIndexBounds()[2]);
  forEachIndex(part.shape,
               [&](ArrayRef<int64_t> at) { y.at(replaceDims<int64_t>(at, axis, 1, from + at[axis])) = part.at(at); });
  return {y};
}

// Backends that update in place write only the part.
Value DynamicUpdateSliceOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> at) {
  int64_t axis = getAxis(), size = shapeOf(getPart())[axis];
  AffineExpr place = at[axis] - builder.dataIndex(2, {}, getIndexBounds()[2]);
  SmallVector<AffineExpr> inPart = replaceDims<AffineExpr>(at, axis, 1, place);
  return builder.guarded({place, size - 1 - place}, [&] { return builder.operand(1, inPart); }, builder.operand(0, at));
}

SmallVector<Value> DynamicUpdateSliceOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  Node dY(builder, getLoc(), dResults[0]), zeros = Node(builder, getLoc(), getPart()).like(0.0);
  int64_t axis = getAxis(), size = shapeOf(getPart())[axis];
  return {updatedAt(dY, zeros, getIndex(), axis),
          builder.create<DynamicSliceOp>(getLoc(), dResults[0], getIndex(), axis, size), Value()};
}

SmallVector<int64_t> DynamicUpdateSliceOp::getIndexBounds() {
  int64_t axis = getAxis();
  return {0, 0, shapeOf(getX())[axis] - shapeOf(getPart())[axis] + 1};
}

unsigned DynamicUpdateSliceOp::getPartOperand() { return 1; }
bool DynamicUpdateSliceOp::isInPlace() { return getInPlace(); }
void DynamicUpdateSliceOp::setInPlace() { setInPlaceAttr(UnitAttr::get(getContext())); }

bool DynamicUpdateSliceOp::isLinearIn(ArrayRef<bool> sums) { return sums[0] && sums[1] && !sums[2]; }

SmallVector<Sample> DynamicUpdateSliceOp::samples() {
  auto sample = [](const std::string &axis, const std::string &x, const std::string &part, const std::string &index,
                   double least, double below) {
    return Sample{"\"sluice.dynamic_update_slice\"(%0, %1, %2) {axis = " + axis + " : i64} : (tensor<" + x +
                      "xf64>, tensor<" + part + "xf64>, tensor<" + index + ">) -> tensor<" + x + "xf64>",
                  {{-2, 2}, {-2, 2}, {least, below}}};
  };
  return {sample("1", "?x5x3", "?x1x3", "i32", 0, 5), sample("0", "6x?x2", "2x?x2", "i64", 0, 5),
          sample("1", "2x40", "2x3", "i32", 0, 38), sample("0", "4x3", "4x3", "i32", 0, 1),
          sample("2", "?x2x40", "?x2x18", "i32", 0, 23)};
}

} // namespace sluice::ir
