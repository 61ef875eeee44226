// Ops that move elements without computing.
#include "ir/Dialect.h"
#include "ir/build/Lane.h"
#include "ir/build/Node.h"
#include "ir/ops/Inference.h"
#include "ir/reference/Permuted.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace sluice::ir {

static SmallVector<int64_t> iota(int64_t count) { return llvm::to_vector(llvm::seq<int64_t>(0, count)); }

/// A shape in an attribute, where -1 stands for `?`.
static SmallVector<int64_t> readShape(ArrayRef<int64_t> attribute) {
  return llvm::map_to_vector(attribute, [](int64_t size) { return size == -1 ? ShapedType::kDynamic : size; });
}

//===- reshape ---------------------------------------------------------------------------------------------------===//

LogicalResult ReshapeOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                          DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                          SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  ArrayRef<int64_t> from = shapeOf(op.getX());
  SmallVector<int64_t> to = readShape(op.getShape());
  if (failed(addResult(loc, to, elementOf(op.getX()), types)))
    return failure();
  auto isOutermost = [](ArrayRef<int64_t> shape) {
    return !llvm::is_contained(shape.drop_front(std::min<size_t>(1, shape.size())), ShapedType::kDynamic);
  };
  if (!isOutermost(from) || !isOutermost(to))
    return inferenceFailure(loc, "a reshape needs ? outermost: ", printShape(from), " to ", printShape(to));
  if (failed(addResult(loc, from, elementOf(op.getX()), types)))
    return failure();
  types.pop_back();
  ElementCount before = countElements(from), after = countElements(to);
  if (before.rows != after.rows || before.known != after.known)
    return inferenceFailure(loc, "a reshape keeps the number of elements: ", printShape(from), " and ", printShape(to));
  return success();
}

SmallVector<HostTensor> ReshapeOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  HostTensor y = operands[0];
  y.shape = runtimeShape(getY().getType(), rows);
  return {y};
}

/// Splits a linear index into the indices of dimensions of these sizes.
static void delinearise(AffineExpr linear, ArrayRef<int64_t> sizes, SmallVectorImpl<AffineExpr> &index) {
  int64_t inner = 1, whole = 1;
  for (int64_t size : sizes)
    whole *= size;
  inner = whole;
  bool outermost = true;
  for (int64_t size : sizes) {
    inner /= size;
    if (size == 1) {
      index.push_back(getAffineConstantExpr(0, linear.getContext()));
      continue;
    }
    AffineExpr digit = linear.floorDiv(inner);
    index.push_back(outermost ? digit : digit % size);
    outermost = false;
  }
}

static AffineExpr linearise(ArrayRef<AffineExpr> index, ArrayRef<int64_t> sizes, MLIRContext *context) {
  AffineExpr linear = getAffineConstantExpr(0, context);
  for (auto [digit, size] : llvm::zip_equal(index, sizes))
    linear = size == 1 ? linear : linear * size + digit;
  return linear;
}

// Dimensions are matched in groups of equal products, so that dimensions unaffected by the reshape keep their own
// index.
Value ReshapeOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  ArrayRef<int64_t> from = shapeOf(getX()), to = shapeOf(getY());
  SmallVector<AffineExpr> source;
  size_t i = 0, j = 0;
  if (!to.empty() && ShapedType::isDynamic(to[0])) {
    source.push_back(index[0]);
    i = j = 1;
  }
  while (i < from.size() || j < to.size()) {
    size_t firstFrom = i, firstTo = j;
    int64_t products[2] = {i < from.size() ? from[i++] : 1, j < to.size() ? to[j++] : 1};
    while (products[0] != products[1])
      (products[0] < products[1] ? products[0] : products[1]) *= products[0] < products[1] ? from[i++] : to[j++];
    AffineExpr linear = linearise(index.slice(firstTo, j - firstTo), to.slice(firstTo, j - firstTo), getContext());
    delinearise(linear, from.slice(firstFrom, i - firstFrom), source);
  }
  return builder.operand(0, source);
}

SmallVector<Value> ReshapeOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  return {reshape(Node(builder, getLoc(), dResults[0]), shapeOf(getX()))};
}

SmallVector<Sample> ReshapeOp::samples() {
  std::string dynamic = std::to_string(ShapedType::kDynamic);
  return {
      {"\"sluice.reshape\"(%0) {shape = array<i64: " + dynamic + ", 8>} : (tensor<?x2x4xf64>) -> tensor<?x8xf64>",
       {{-2, 2}}},
      {"\"sluice.reshape\"(%0) {shape = array<i64: 2, 1, 12>} : (tensor<4x6xf64>) -> tensor<2x1x12xf64>", {{-2, 2}}}};
}

//===- transpose -------------------------------------------------------------------------------------------------===//

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                            DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                            SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  ArrayRef<int64_t> x = shapeOf(op.getX()), permutation = op.getPermutation();
  if (permutation.size() != x.size())
    return inferenceFailure(loc, "a permutation of ", x.size(), " dimensions has ", permutation.size(), " numbers");
  if (failed(checkAxes(loc, permutation, x)))
    return failure();
  return addResult(loc, llvm::map_to_vector(permutation, [&](int64_t axis) { return x[axis]; }), elementOf(op.getX()),
                   types);
}

SmallVector<HostTensor> TransposeOp::evaluate(ArrayRef<HostTensor> operands, int64_t) {
  return {permuted(operands[0], getPermutation())};
}

Value TransposeOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  SmallVector<AffineExpr> source(index.size());
  for (auto [axis, i] : llvm::zip_equal(getPermutation(), index))
    source[axis] = i;
  return builder.operand(0, source);
}

SmallVector<Value> TransposeOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [dim, axis] : llvm::enumerate(getPermutation()))
    inverse[axis] = int64_t(dim);
  return {builder.create<TransposeOp>(getLoc(), dResults[0], inverse)};
}

SmallVector<Sample> TransposeOp::samples() {
  return {{"\"sluice.transpose\"(%0) {permutation = array<i64: 2, 0, 1>} : (tensor<?x3x4xf64>) -> tensor<4x?x3xf64>",
           {{-2, 2}}}};
}

//===- expand ----------------------------------------------------------------------------------------------------===//

LogicalResult ExpandOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                         DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                         SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  ArrayRef<int64_t> x = shapeOf(op.getX()), dims = op.getDims();
  SmallVector<int64_t> shape = readShape(op.getShape());
  if (dims.size() != x.size())
    return inferenceFailure(loc, "expand needs one of `dims` for each dimension of ", printShape(x), "; got ",
                            dims.size());
  if (failed(checkAxes(loc, dims, shape)))
    return failure();
  if (!llvm::is_sorted(dims))
    return inferenceFailure(loc, "the dims of expand do not ascend");
  for (auto [size, dim] : llvm::zip_equal(x, dims))
    if (size != 1 && size != shape[dim])
      return inferenceFailure(loc, "cannot broadcast ", printShape(x), " to ", printShape(shape), ": sizes ",
                              printDim(size), " and ", printDim(shape[dim]));
  return addResult(loc, shape, elementOf(op.getX()), types);
}

SmallVector<HostTensor> ExpandOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  HostTensor y(runtimeShape(getY().getType(), rows));
  ArrayRef<int64_t> x = shapeOf(getX());
  SmallVector<int64_t> source(x.size());
  forEachIndex(y.shape, [&](ArrayRef<int64_t> index) {
    for (size_t dim = 0; dim < x.size(); ++dim)
      source[dim] = x[dim] == 1 ? 0 : index[getDims()[dim]];
    y.at(index) = operands[0].at(source);
  });
  return {y};
}

Value ExpandOp::buildInShape(OpBuilder &builder, ArrayRef<int64_t> shape) {
  auto x = cast<RankedTensorType>(getX().getType());
  if (!x.hasStaticShape() || x.getNumElements() != 1)
    return {};
  return builder.create<ExpandOp>(getLoc(), reshape(Node(builder, getLoc(), getX()), {}), ArrayRef<int64_t>(), shape);
}

Value ExpandOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  SmallVector<AffineExpr> source;
  for (auto [size, dim] : llvm::zip_equal(shapeOf(getX()), getDims()))
    source.push_back(size == 1 ? builder.constantIndex(0) : index[dim]);
  return builder.operand(0, source);
}

// Sums first over dimensions that x lacks, then over those that it has with size 1.
SmallVector<Value> ExpandOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  SmallVector<int64_t> added, stretched;
  for (int64_t dim : iota(tensorOf(getY()).getRank()))
    if (!llvm::is_contained(getDims(), dim))
      added.push_back(dim);
  for (auto [axis, size] : llvm::enumerate(shapeOf(getX())))
    if (size == 1 && shapeOf(getY())[getDims()[axis]] != 1)
      stretched.push_back(int64_t(axis));
  return {sum(sum(Node(builder, getLoc(), dResults[0]), added), stretched, true)};
}

SmallVector<Sample> ExpandOp::samples() {
  std::string dynamic = std::to_string(ShapedType::kDynamic);
  return {{"\"sluice.expand\"(%0) {dims = array<i64: 1>, shape = array<i64: " + dynamic +
               ", 4>} : (tensor<4xf64>) -> tensor<?x4xf64>",
           {{-2, 2}}},
          {"\"sluice.expand\"(%0) {dims = array<i64: 0, 2>, shape = array<i64: 3, 2, 4, 2>} : (tensor<3x1xf64>) -> "
           "tensor<3x2x4x2xf64>",
           {{-2, 2}}},
          {"\"sluice.expand\"(%0) {dims = array<i64>, shape = array<i64: 2, 3>} : (tensor<f64>) -> tensor<2x3xf64>",
           {{-2, 2}}}};
}

//===- slice -----------------------------------------------------------------------------------------------------===//

LogicalResult SliceOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                        DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                        SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  ArrayRef<int64_t> x = shapeOf(op.getX()), start = op.getStart(), end = op.getEnd(), step = op.getStep();
  if (start.size() != x.size() || end.size() != x.size() || step.size() != x.size())
    return inferenceFailure(loc, "a slice of ", printShape(x), " needs ", x.size(), " starts, ends and steps; got ",
                            start.size(), ", ", end.size(), " and ", step.size());
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(x)) {
    if (ShapedType::isDynamic(size)) {
      if (start[dim] != 0 || step[dim] != 1)
        return inferenceFailure(loc, "? can only be taken whole: start ", start[dim], " and step ", step[dim],
                                " in dimension ", dim, " of ", printShape(x));
      shape.push_back(size);
      continue;
    }
    if (step[dim] < 1 || start[dim] < 0 || end[dim] <= start[dim] || end[dim] > size)
      return inferenceFailure(loc, "slice [", start[dim], ", ", end[dim], ") with step ", step[dim],
                              " is empty or outside of dimension ", dim, " of ", printShape(x));
    shape.push_back((end[dim] - start[dim] - 1) / step[dim] + 1);
  }
  return addResult(loc, shape, elementOf(op.getX()), types);
}

SmallVector<HostTensor> SliceOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  HostTensor y(runtimeShape(getY().getType(), rows));
  SmallVector<int64_t> source(y.shape.size());
  forEachIndex(y.shape, [&](ArrayRef<int64_t> index) {
    for (size_t dim = 0; dim < index.size(); ++dim)
      source[dim] = getStart()[dim] + index[dim] * getStep()[dim];
    y.at(index) = operands[0].at(source);
  });
  return {y};
}

Value SliceOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  SmallVector<AffineExpr> source;
  for (auto [i, start, step] : llvm::zip_equal(index, getStart(), getStep()))
    source.push_back(i * step + start);
  return builder.operand(0, source);
}

SmallVector<Value> SliceOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  ArrayRef<int64_t> x = shapeOf(getX()), y = shapeOf(getY());
  SmallVector<int64_t> low(x.size(), 0), high(x.size(), 0), interior(x.size(), 0);
  for (size_t dim = 0; dim < x.size(); ++dim) {
    if (ShapedType::isDynamic(x[dim]))
      continue;
    low[dim] = getStart()[dim];
    interior[dim] = y[dim] > 1 ? getStep()[dim] - 1 : 0;
    high[dim] = x[dim] - low[dim] - (y[dim] - 1) * (interior[dim] + 1) - 1;
  }
  return {builder.create<PadOp>(getLoc(), dResults[0], low, high, interior, APFloat(0.0))};
}

SmallVector<Sample> SliceOp::samples() {
  return {{"\"sluice.slice\"(%0) {start = array<i64: 0, 1, 2>, end = array<i64: 0, 3, 7>, step = array<i64: 1, 1, 2>} "
           ": (tensor<?x4x8xf64>) -> tensor<?x2x3xf64>",
           {{-2, 2}}}};
}

//===- pad -------------------------------------------------------------------------------------------------------===//

LogicalResult PadOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands, DictionaryAttr attributes,
                                      OpaqueProperties properties, RegionRange, SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  ArrayRef<int64_t> x = shapeOf(op.getX()), low = op.getLow(), high = op.getHigh(), interior = op.getInterior();
  if (failed(checkNumbers(loc, "low", low, x.size(), 0)) || failed(checkNumbers(loc, "high", high, x.size(), 0)) ||
      failed(checkNumbers(loc, "interior", interior, x.size(), 0)))
    return failure();
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(x)) {
    if (ShapedType::isDynamic(size)) {
      if (low[dim] || high[dim] || interior[dim])
        return inferenceFailure(loc, "? cannot be padded: dimension ", dim, " of ", printShape(x));
      shape.push_back(size);
      continue;
    }
    int64_t gaps;
    if (size < 1 || llvm::MulOverflow(size - 1, interior[dim], gaps) || gaps > kMostElements || size > kMostElements)
      return inferenceFailure(loc, "the padded size is empty or too large in dimension ", dim, " of ", printShape(x));
    shape.push_back(low[dim] + size + gaps + high[dim]);
  }
  return addResult(loc, shape, elementOf(op.getX()), types);
}

SmallVector<HostTensor> PadOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  HostTensor y(runtimeShape(getY().getType(), rows), getValue().convertToDouble());
  SmallVector<int64_t> target(y.shape.size());
  forEachIndex(operands[0].shape, [&](ArrayRef<int64_t> index) {
    for (size_t dim = 0; dim < index.size(); ++dim)
      target[dim] = getLow()[dim] + index[dim] * (getInterior()[dim] + 1);
    y.at(target) = operands[0].at(index);
  });
  return {y};
}

Value PadOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  SmallVector<AffineExpr> source, nonNegative;
  for (auto [dim, size] : llvm::enumerate(shapeOf(getX()))) {
    int64_t step = getInterior()[dim] + 1;
    AffineExpr place = index[dim] - getLow()[dim];
    if (getLow()[dim] > 0)
      nonNegative.push_back(place);
    if (getHigh()[dim] > 0)
      nonNegative.push_back((size - 1) * step - place);
    if (step > 1)
      nonNegative.push_back(-(place % step));
    source.push_back(place.floorDiv(step));
  }
  if (nonNegative.empty())
    return builder.operand(0, source);
  Value value = builder.constant(getValue().convertToDouble(), getLaneElement(elementOf(getY())));
  return builder.guarded(nonNegative, [&] { return builder.operand(0, source); }, value);
}

SmallVector<Value> PadOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  SmallVector<int64_t> start(getLow()), end, step;
  for (auto [dim, size] : llvm::enumerate(shapeOf(getX()))) {
    step.push_back(getInterior()[dim] + 1);
    end.push_back(ShapedType::isDynamic(size) ? 0 : start[dim] + (size - 1) * step.back() + 1);
  }
  return {builder.create<SliceOp>(getLoc(), dResults[0], start, end, step)};
}

SmallVector<Sample> PadOp::samples() {
  return {{"\"sluice.pad\"(%0) {low = array<i64: 0, 1, 0>, high = array<i64: 0, 2, 1>, interior = array<i64: 0, 0, 2>, "
           "value = 0.5 : f64} : (tensor<?x2x3xf64>) -> "
           "tensor<?x5x8xf64>",
           {{-2, 2}}}};
}

//===- concat ----------------------------------------------------------------------------------------------------===//

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                         DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                         SmallVectorImpl<Type> &types) {
  int64_t axis = Adaptor(operands, attributes, properties).getAxis();
  if (operands.empty())
    return inferenceFailure(loc, "concat needs an operand");
  SmallVector<int64_t> shape(shapeOf(operands[0]));
  if (failed(checkAxes(loc, axis, shape)))
    return failure();
  shape[axis] = 0;
  for (Value operand : operands) {
    SmallVector<int64_t> other(shapeOf(operand));
    if (other.size() == shape.size() && !ShapedType::isDynamic(other[axis])) {
      if (other[axis] > kMostElements)
        return inferenceFailure(loc, "too many elements in ", printShape(other));
      shape[axis] += other[axis];
      other[axis] = shape[axis];
    }
    if (other != shape || elementOf(operand) != elementOf(operands[0]))
      return inferenceFailure(loc, "cannot join ", printShape(shapeOf(operands[0])), " ", elementOf(operands[0]),
                              " and ", printShape(shapeOf(operand)), " ", elementOf(operand), " along dimension ",
                              axis);
  }
  return addResult(loc, shape, elementOf(operands[0]), types);
}

SmallVector<HostTensor> ConcatOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  HostTensor y(runtimeShape(getY().getType(), rows));
  int64_t offset = 0;
  for (const HostTensor &x : operands) {
    forEachIndex(x.shape, [&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> target(index);
      target[getAxis()] += offset;
      y.at(target) = x.at(index);
    });
    offset += x.shape[getAxis()];
  }
  return {y};
}

Value ConcatOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  Value result = builder.constant(0, getLaneElement(elementOf(getY())));
  SmallVector<AffineExpr> source(index);
  AffineExpr place = index[getAxis()];
  for (auto [number, x] : llvm::enumerate(getXs())) {
    int64_t size = shapeOf(x)[getAxis()];
    source[getAxis()] = place;
    result = builder.guarded(
        {place, size - 1 - place}, [&, number = unsigned(number), source] { return builder.operand(number, source); },
        result);
    place = place - size;
  }
  return result;
}

SmallVector<Value> ConcatOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  SmallVector<Value> dXs;
  int64_t axis = getAxis(), rank = tensorOf(getY()).getRank();
  SmallVector<int64_t> start(rank, 0), end(shapeOf(getY())), step(rank, 1);
  for (Value x : getXs()) {
    end[axis] = start[axis] + shapeOf(x)[axis];
    dXs.push_back(builder.create<SliceOp>(getLoc(), dResults[0], start, end, step));
    start[axis] = end[axis];
  }
  return dXs;
}

SmallVector<Sample> ConcatOp::samples() {
  return {{"\"sluice.concat\"(%0, %1, %2) {axis = 1 : i64} : (tensor<?x2xf64>, tensor<?x1xf64>, tensor<?x3xf64>) -> "
           "tensor<?x6xf64>",
           {{-2, 2}, {-2, 2}, {-2, 2}}}};
}

//===- linearity -------------------------------------------------------------------------------------------------===//

bool ReshapeOp::isLinearIn(ArrayRef<bool>) { return true; }
bool TransposeOp::isLinearIn(ArrayRef<bool>) { return true; }
bool ExpandOp::isLinearIn(ArrayRef<bool>) { return true; }
bool SliceOp::isLinearIn(ArrayRef<bool>) { return true; }
bool PadOp::isLinearIn(ArrayRef<bool>) { return getValue().isZero(); }
bool ConcatOp::isLinearIn(ArrayRef<bool> sums) {
  return llvm::all_of(sums, [](bool isSum) { return isSum; });
}

} // namespace sluice::ir
