// Reductions over axes. Softmax is in Softmax.cpp, batch normalization is in BatchNorm.cpp.
#include "ir/Dialect.h"
#include "ir/Layout.h"
#include "ir/build/Fold.h"
#include "ir/build/Lane.h"
#include "ir/build/Node.h"
#include "ir/ops/Inference.h"
#include <cmath>
#include <map>

using namespace mlir;

namespace sluice::ir {

static_assert(ElementBuilder::kRows == ShapedType::kDynamic, "extents are sizes of dimensions");

//===- sum, mean, reduce_max, reduce_min -------------------------------------------------------------------------===//

static LogicalResult inferReduction(MaybeLocation loc, Value x, ArrayRef<int64_t> axes, bool keepdims,
                                    SmallVectorImpl<Type> &types) {
  if (failed(checkAxes(loc, axes, shapeOf(x))))
    return failure();
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(shapeOf(x))) {
    if (!llvm::is_contained(axes, int64_t(dim)))
      shape.push_back(size);
    else if (keepdims)
      shape.push_back(1);
  }
  return addResult(loc, shape, elementOf(x), types);
}

/// Folds x over `axes`. The order of the result's elements does not depend on keepdims.
static HostTensor reduceHost(const HostTensor &x, ArrayRef<int64_t> axes, ArrayRef<int64_t> shape, double initial,
                             double (*combine)(double, double)) {
  HostTensor kept(x.shape, 0), y(shape, initial);
  for (int64_t axis : axes)
    kept.shape[axis] = 1;
  forEachIndex(x.shape, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> target(index);
    for (int64_t axis : axes)
      target[axis] = 0;
    double &sofar = y.data[kept.offset(target)];
    sofar = combine(sofar, x.at(index));
  });
  return y;
}

template <typename Op>
static HostTensor reduceHost(Op op, const HostTensor &x, int64_t rows, double initial,
                             double (*combine)(double, double)) {
  return reduceHost(x, op.getAxes(), runtimeShape(op.getY().getType(), rows), initial, combine);
}

/// The index in x of the element at `index` of the result and at `inner` of the reduced dimensions.
static SmallVector<AffineExpr> joinIndex(ArrayRef<int64_t> axes, bool keepdims, int64_t rank,
                                         ArrayRef<AffineExpr> index, ArrayRef<AffineExpr> inner) {
  SmallVector<AffineExpr> source;
  size_t outerAt = 0, innerAt = 0;
  for (int64_t dim = 0; dim < rank; ++dim) {
    bool reduced = llvm::is_contained(axes, dim);
    source.push_back(reduced ? inner[innerAt++] : index[outerAt]);
    outerAt += !reduced || keepdims;
  }
  return source;
}

/// The dimensions in the order of a value's layout, if it has no tiles and begins with the rows, if there are any.
static SmallVector<unsigned> dimsInMemory(RankedTensorType type) {
  auto dims = llvm::to_vector(llvm::seq<unsigned>(0, type.getRank()));
  if (!isUncut(type))
    return dims;
  SmallVector<PhysicalDim> physical = *getPhysicalDims(type);
  if (!type.hasStaticShape() && !type.isDynamicDim(physical.front().logical))
    return dims;
  return llvm::map_to_vector(physical, [](const PhysicalDim &dim) { return dim.logical; });
}

/// Folds over the reduced dimensions in this order.
template <typename Op>
static Value buildReduction(Op op, ElementBuilder &builder, ArrayRef<AffineExpr> index, double identity,
                            Combine combine, ArrayRef<unsigned> order) {
  ArrayRef<int64_t> x = shapeOf(op.getX());
  SmallVector<unsigned> reduced;
  llvm::copy_if(order, std::back_inserter(reduced),
                [&](unsigned dim) { return llvm::is_contained(op.getAxes(), int64_t(dim)); });
  if (reduced.empty())
    return builder.operand(0, index);
  SmallVector<int64_t> extents = llvm::map_to_vector(reduced, [&](unsigned dim) { return x[dim]; });
  return fold(builder, extents, elementOf(op.getX()), identity, combine, [&](ArrayRef<AffineExpr> inner) {
    std::map<unsigned, AffineExpr> indices;
    for (auto [dim, its] : llvm::zip_equal(reduced, inner))
      indices[dim] = its;
    SmallVector<AffineExpr> ascending = llvm::map_to_vector(indices, [](const auto &pair) { return pair.second; });
    return builder.operand(0, joinIndex(op.getAxes(), op.getKeepdims(), x.size(), index, ascending));
  });
}

/// In the order of the dimensions, whatever the layout, because it determines the bits of the result.
template <typename Op>
static Value buildReduction(Op op, ElementBuilder &builder, ArrayRef<AffineExpr> index, double identity,
                            Combine combine) {
  return buildReduction(op, builder, index, identity, combine,
                        llvm::to_vector(llvm::seq<unsigned>(0, tensorOf(op.getX()).getRank())));
}

/// A reduction's result or its gradient, broadcast along the axes.
template <typename Op> static Node spread(Op op, Node value) {
  auto type = tensorOf(op.getX());
  if (op.getKeepdims())
    return expand(value, llvm::to_vector(llvm::seq<int64_t>(0, type.getRank())), type);
  return expandOver(value, op.getAxes(), type);
}

/// Whether the rows are reduced.
template <typename Op> static bool reducesRows(Op op) {
  return llvm::any_of(op.getAxes(), [&](int64_t axis) { return tensorOf(op.getX()).isDynamicDim(axis); });
}

static std::vector<Sample> reductionSamples(const std::string &mnemonic) {
  auto sample = [&](const char *axes, const char *attributes, const char *type) {
    return Sample{"\"sluice." + mnemonic + "\"(%0) {axes = array<i64: " + axes + ">" + attributes + "} : " + type,
                  {{-2, 2}}};
  };
  return {sample("0", "", "(tensor<?x4xf64>) -> tensor<4xf64>"),
          sample("1", ", keepdims", "(tensor<?x4x3xf64>) -> tensor<?x1x3xf64>"),
          sample("2, 0", "", "(tensor<3x2x4xf64>) -> tensor<2xf64>"),
          sample("0, 1", "", "(tensor<?x4xf64>) -> tensor<f64>")};
}

LogicalResult SumOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands, DictionaryAttr attributes,
                                      OpaqueProperties properties, RegionRange, SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  return inferReduction(loc, op.getX(), op.getAxes(), op.getKeepdims(), types);
}

SmallVector<HostTensor> SumOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  return {reduceHost(*this, operands[0], rows, 0, [](double a, double b) { return a + b; })};
}

Value SumOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  return buildReduction(*this, builder, index, 0, addLanes);
}

SmallVector<Value> SumOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  return {spread(*this, Node(builder, getLoc(), dResults[0]))};
}

RowFlow SumOp::getRowFlow() { return reducesRows(*this) ? RowFlow::Sum : RowFlow::Apart; }

bool SumOp::isLinearIn(ArrayRef<bool>) { return true; }

Value SumOp::buildStepSum(OpBuilder &builder, ValueRange stacked, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> axes{dims[0]};
  for (int64_t axis : getAxes())
    axes.push_back(axis < dims[0] ? axis : axis + 1);
  llvm::sort(axes);
  Node all = sum(Node(builder, getLoc(), stacked[0]), axes);
  return getKeepdims() ? expandOver(all, getAxes(), getY().getType()) : all;
}

SmallVector<Sample> SumOp::samples() {
  auto samples = reductionSamples("sum");
  return SmallVector<Sample>(samples.begin(), samples.end());
}

LogicalResult MeanOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands, DictionaryAttr attributes,
                                       OpaqueProperties properties, RegionRange, SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  if (failed(checkFloats(loc, operands)))
    return failure();
  return inferReduction(loc, op.getX(), op.getAxes(), op.getKeepdims(), types);
}

SmallVector<HostTensor> MeanOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  HostTensor y = reduceHost(*this, operands[0], rows, 0, [](double a, double b) { return a + b; });
  double count = 1;
  for (int64_t axis : getAxes())
    count *= double(operands[0].shape[axis]);
  for (double &element : y.data)
    element /= count;
  return {y};
}

Value MeanOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  Lane total(builder.builder(), builder.loc(), buildReduction(*this, builder, index, 0, addLanes));
  ElementCount count = countElements(shapeOf(getX()), getAxes());
  if (!count.rows)
    return total / double(count.known);
  return total / (Lane(builder.builder(), builder.loc(), builder.rows(elementOf(getX()))) * double(count.known));
}

SmallVector<Value> MeanOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  Node dY = widened(Node(builder, getLoc(), dResults[0]));
  Node each = dY / count(widened(Node(builder, getLoc(), getX())), getAxes(), dY);
  return {spread(*this, castTo(each, elementOf(getX())))};
}

bool MeanOp::isLinearIn(ArrayRef<bool>) { return true; }

/// The sum over all replicas divided by the number of all elements; two-byte floats are added and divided in f32.
SmallVector<Value> MeanOp::expandForReplicas(OpBuilder &builder, const RowNumbers &rows) {
  if (!reducesRows(*this))
    return {};
  Node total = sum(widened(Node(builder, getLoc(), getX())), getAxes(), getKeepdims());
  Node count = castTo(Node(builder, getLoc(), rows.all()), elementOf(total));
  if (int64_t known = countElements(shapeOf(getX()), getAxes()).known; known != 1)
    count = count * double(known);
  return {castTo(total / expand(count, {}, total.type()), elementOf(getX()))};
}

SmallVector<Sample> MeanOp::samples() {
  auto samples = reductionSamples("mean");
  return SmallVector<Sample>(samples.begin(), samples.end());
}

/// The gradient of a maximum or minimum: elements equal to it share dY. For f16 and bf16, they are counted in f32,
/// because f16 has no number above 65504.
template <typename Op> static SmallVector<Value> buildExtremumGradient(Op op, OpBuilder &builder, Value dResult) {
  auto wide = [&](Value value) { return widened(Node(builder, op.getLoc(), value)); };
  Node x = wide(op.getX()), y = wide(op.getY()), dY = wide(dResult);
  Node chosen = where(x == spread(op, y), x.like(1.0), 0.0);
  Node dX = chosen * spread(op, dY / sum(chosen, op.getAxes(), op.getKeepdims()));
  return {castTo(dX, elementOf(op.getX()))};
}

LogicalResult ReduceMaxOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                            DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                            SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  return inferReduction(loc, op.getX(), op.getAxes(), op.getKeepdims(), types);
}

// The greatest i64 is not a double. The double below it suffices, because the reference represents integers only up to
// 2^53.
static double greatestOf(Type element) {
  switch (*dtypeOf(element)) {
  case SLUICE_DTYPE_f32:
  case SLUICE_DTYPE_f64:
  case SLUICE_DTYPE_f16:
  case SLUICE_DTYPE_bf16:
    return kInfinity;
  case SLUICE_DTYPE_i32:
    return 0x1p31 - 1;
  case SLUICE_DTYPE_i64:
    return 9223372036854774784.0;
  case SLUICE_DTYPE_u8:
    return 255;
  case SLUICE_DTYPE_boolean:
    return 1;
  }
  llvm_unreachable("a dtype beyond the table");
}

SmallVector<HostTensor> ReduceMaxOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  return {reduceHost(*this, operands[0], rows, leastOf(elementOf(getX())),
                     [](double a, double b) { return std::isnan(a) || a > b ? a : b; })};
}

Value ReduceMaxOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  return buildReduction(*this, builder, index, leastOf(elementOf(getX())), max, dimsInMemory(tensorOf(getX())));
}

SmallVector<Value> ReduceMaxOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  return buildExtremumGradient(*this, builder, dResults[0]);
}

RowFlow ReduceMaxOp::getRowFlow() { return reducesRows(*this) ? RowFlow::Max : RowFlow::Apart; }

SmallVector<Sample> ReduceMaxOp::samples() {
  auto samples = reductionSamples("reduce_max");
  return SmallVector<Sample>(samples.begin(), samples.end());
}

LogicalResult ReduceMinOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                            DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                            SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  return inferReduction(loc, op.getX(), op.getAxes(), op.getKeepdims(), types);
}

SmallVector<HostTensor> ReduceMinOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  return {reduceHost(*this, operands[0], rows, greatestOf(elementOf(getX())),
                     [](double a, double b) { return std::isnan(a) || a < b ? a : b; })};
}

Value ReduceMinOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  return buildReduction(*this, builder, index, greatestOf(elementOf(getX())), min, dimsInMemory(tensorOf(getX())));
}

SmallVector<Value> ReduceMinOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  return buildExtremumGradient(*this, builder, dResults[0]);
}

/// A maximum of the values in reverse order: -x, or -1 - x for integers, which is also defined for the least integer.
SmallVector<Value> ReduceMinOp::expandForReplicas(OpBuilder &builder, const RowNumbers &) {
  if (!reducesRows(*this))
    return {};
  auto opposite = [](Node x) { return isa<FloatType>(x.type().getElementType()) ? -x : -1.0 - x; };
  Node x = opposite(Node(builder, getLoc(), getX()));
  Node greatest(builder, getLoc(), builder.create<ReduceMaxOp>(getLoc(), x, getAxes(), getKeepdims()));
  return {opposite(greatest)};
}

SmallVector<Sample> ReduceMinOp::samples() {
  auto samples = reductionSamples("reduce_min");
  return SmallVector<Sample>(samples.begin(), samples.end());
}

//===- prod ------------------------------------------------------------------------------------------------------===//

LogicalResult ProdOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands, DictionaryAttr attributes,
                                       OpaqueProperties properties, RegionRange, SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  return inferReduction(loc, op.getX(), op.getAxes(), op.getKeepdims(), types);
}

SmallVector<HostTensor> ProdOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  return {reduceHost(*this, operands[0], rows, 1, [](double a, double b) { return a * b; })};
}

static Lane multiplyLanes(Lane a, Lane b) { return a * b; }

Value ProdOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  return buildReduction(*this, builder, index, 1, multiplyLanes);
}

// With `rest` the product of the nonzero elements: dX = dY * rest / x without zeros; with one zero, dY * rest there and
// 0 elsewhere; with more zeros, 0.
SmallVector<Value> ProdOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  Node x = widened(Node(builder, getLoc(), getX())), dY = widened(Node(builder, getLoc(), dResults[0]));
  Node isZero = where(x == x.like(0.0), x.like(1.0), 0.0), others = where(x == x.like(0.0), x.like(1.0), x);
  Node zeros = spread(*this, sum(isZero, getAxes(), getKeepdims()));
  Node rest(builder, getLoc(), builder.create<ProdOp>(getLoc(), others, getAxes(), getKeepdims()));
  Node dX = spread(*this, dY * rest) / others;
  return {castTo(where(zeros == isZero, dX, 0.0), elementOf(getX()))};
}

RowFlow ProdOp::getRowFlow() { return reducesRows(*this) ? RowFlow::Whole : RowFlow::Apart; }

SmallVector<Sample> ProdOp::samples() {
  auto samples = reductionSamples("prod");
  return SmallVector<Sample>(samples.begin(), samples.end());
}

//===- argmax ----------------------------------------------------------------------------------------------------===//

LogicalResult ArgMaxOp::inferReturnTypes(MLIRContext *context, MaybeLocation loc, ValueRange operands,
                                         DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                         SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  int64_t axis = op.getAxis();
  if (failed(checkAxes(loc, axis, shapeOf(op.getX()))))
    return failure();
  SmallVector<int64_t> shape(shapeOf(op.getX()));
  if (shape[axis] > int64_t(1) << 31)
    return inferenceFailure(loc, "the indices of ", shape[axis], " elements do not fit into i32");
  shape.erase(shape.begin() + axis);
  return addResult(loc, shape, IntegerType::get(context, 32), types);
}

RowFlow ArgMaxOp::getRowFlow() { return tensorOf(getX()).isDynamicDim(getAxis()) ? RowFlow::Whole : RowFlow::Apart; }

SmallVector<HostTensor> ArgMaxOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  HostTensor y(runtimeShape(getY().getType(), rows));
  forEachIndex(y.shape, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> source(index);
    source.insert(source.begin() + getAxis(), 0);
    double best = leastOf(elementOf(getX()));
    for (int64_t i = 0; i < operands[0].shape[getAxis()]; ++i) {
      source[getAxis()] = i;
      if (operands[0].at(source) > best) {
        best = operands[0].at(source);
        y.at(index) = double(i);
      }
    }
  });
  return {y};
}

// Two values are folded together: the maximum and its index. Of equal maxima the lower index wins, whatever the order
// in which partial results are combined.
Value ArgMaxOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  Type element = getLaneElement(elementOf(getX())), i32 = builder.builder().getI32Type();
  auto lane = [&](Value value) { return Lane(builder.builder(), builder.loc(), value); };
  auto combine = [&](ValueRange a, ValueRange b) -> SmallVector<Value> {
    Lane maximum = lane(a[0]), place = lane(a[1]), other = lane(b[0]), otherPlace = lane(b[1]);
    Lane taken = (other > maximum) | ((other == maximum) & (otherPlace < place));
    return {where(taken, other, maximum), where(taken, otherPlace, place)};
  };
  auto step = [&](ArrayRef<AffineExpr> inner, ValueRange sofar) -> SmallVector<Value> {
    Lane maximum = lane(sofar[0]), place = lane(sofar[1]);
    SmallVector<AffineExpr> source(index);
    source.insert(source.begin() + getAxis(), inner[0]);
    Lane value = lane(builder.operand(0, source));
    Lane taken = value > maximum;
    return {where(taken, value, maximum), where(taken, lane(builder.materialize(inner[0], i32)), place)};
  };
  Value initial[] = {builder.constant(leastOf(elementOf(getX())), element), builder.constant(0, i32)};
  return builder.reduce(shapeOf(getX())[getAxis()], initial, step, combine)[1];
}

} // namespace sluice::ir
