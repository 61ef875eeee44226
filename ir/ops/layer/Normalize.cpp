// Normalization over the elements of a row. Batch normalization, over the rows of a call, is in BatchNorm.cpp.
#include "ir/Dialect.h"
#include "ir/build/Fold.h"
#include "ir/build/Lane.h"
#include "ir/build/Node.h"
#include "ir/ops/Inference.h"
#include <cmath>

using namespace mlir;

namespace sluice::ir {

//===- types -----------------------------------------------------------------------------------------------------===//

/// The sizes of weight and bias.
static SmallVector<int64_t> sizesAlong(ArrayRef<int64_t> dims, ArrayRef<int64_t> x) {
  return llvm::map_to_vector(dims, [&](int64_t dim) { return x[dim]; });
}

template <typename Adaptor>
static LogicalResult inferNorm(MaybeLocation loc, ValueRange operands, Adaptor op, SmallVectorImpl<Type> &types) {
  ArrayRef<int64_t> x = shapeOf(op.getX()), weight = shapeOf(op.getWeight()), dims = op.getDims();
  int64_t axis = op.getAxis();
  double eps = op.getEps().convertToDouble();
  if (failed(checkFloats(loc, operands)) || failed(checkAxes(loc, axis, x)) || failed(checkAxes(loc, dims, x)))
    return failure();
  if (llvm::is_contained(x.drop_front(axis), ShapedType::kDynamic))
    return inferenceFailure(loc, "cannot normalize over the rows of a call: dimensions of ", printShape(x), " from ",
                            axis, " on");
  if (!llvm::is_sorted(dims))
    return inferenceFailure(loc, "dims are ascending");
  if (!(eps > 0))
    return inferenceFailure(loc, "eps is above 0; got ", eps);
  if (weight != ArrayRef(sizesAlong(dims, x)) || llvm::is_contained(weight, ShapedType::kDynamic))
    return inferenceFailure(loc, "the weight ", printShape(weight), " is not of these dimensions of ", printShape(x));
  return addResult(loc, x, elementOf(op.getX()), types);
}

//===- references ------------------------------------------------------------------------------------------------===//

namespace {

/// The elements of one row of x: its offset, their mean and 1 / sqrt(var + eps).
struct HostNormRow {
  size_t first, count;
  double mean = 0, inverseDeviation = 0;

  template <typename Op>
  HostNormRow(Op op, const HostTensor &x, size_t first, size_t count) : first(first), count(count) {
    double var = 0;
    for (size_t i = 0; i < count && !op.getRms(); ++i)
      mean += x.data[first + i] / double(count);
    for (size_t i = 0; i < count; ++i)
      var += (x.data[first + i] - mean) * (x.data[first + i] - mean) / double(count);
    inverseDeviation = 1 / std::sqrt(var + op.getEps().convertToDouble());
  }
};

} // namespace

/// Calls `body` with each normalized row of x.
template <typename Op>
static void forEachNormRow(Op op, const HostTensor &x, llvm::function_ref<void(const HostNormRow &)> body) {
  size_t count = 1;
  for (int64_t size : ArrayRef(x.shape).drop_front(op.getAxis()))
    count *= size_t(size);
  for (size_t first = 0; first < x.data.size(); first += count)
    body(HostNormRow(op, x, first, count));
}

/// A vector broadcast to the positions of x's elements.
static std::vector<double> spreadHost(const HostTensor &vector, ArrayRef<int64_t> dims, ArrayRef<int64_t> shape) {
  std::vector<double> values;
  forEachIndex(shape, [&](ArrayRef<int64_t> index) { values.push_back(vector.at(sizesAlong(dims, index))); });
  return values;
}

//===- formulas --------------------------------------------------------------------------------------------------===//

namespace {

/// A row as values: its mean and 1 / sqrt(var + eps), the same for all elements of the row.
template <typename Op> class NormRow {
public:
  NormRow(Op op, ElementBuilder &builder, ArrayRef<AffineExpr> index)
      : op(op), builder(builder), outer(index.take_front(op.getAxis())), mean(lane(builder.constant(0, type()))),
        inverseDeviation(mean) {
    if (!op.getRms())
      mean = meanOf([&](ArrayRef<AffineExpr> at) { return operand(0, at); });
    Lane var = meanOf([&](ArrayRef<AffineExpr> at) { return centred(at) * centred(at); });
    inverseDeviation = 1.0 / sqrt(var + op.getEps().convertToDouble());
  }

  /// Over the elements of the row.
  Lane meanOf(llvm::function_ref<Lane(ArrayRef<AffineExpr>)> term) {
    ArrayRef<int64_t> extents = shapeOf(op.getX()).drop_front(op.getAxis());
    Value total = fold(builder, extents, elementOf(op.getX()), 0, addLanes, [&](ArrayRef<AffineExpr> inner) -> Value {
      SmallVector<AffineExpr> at(outer);
      llvm::append_range(at, inner);
      return term(at);
    });
    return lane(total) / double(countElements(extents).known);
  }

  Lane operand(unsigned number, ArrayRef<AffineExpr> index) { return lane(builder.operand(number, index)); }
  /// Of weight or bias.
  Lane ofVector(unsigned number, ArrayRef<AffineExpr> index) {
    return operand(number, llvm::map_to_vector(op.getDims(), [&](int64_t dim) { return index[dim]; }));
  }
  Lane centred(ArrayRef<AffineExpr> index) {
    Lane x = operand(0, index);
    return op.getRms() ? x : x - mean;
  }
  Lane scale() { return inverseDeviation; }

private:
  Lane lane(Value value) { return Lane(builder.builder(), builder.loc(), value); }
  Type type() { return getLaneElement(elementOf(op.getX())); }

  Op op;
  ElementBuilder &builder;
  SmallVector<AffineExpr> outer;
  Lane mean, inverseDeviation;
};

} // namespace

//===- normalize -------------------------------------------------------------------------------------------------===//

LogicalResult NormalizeOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                            DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                            SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  if (failed(inferNorm(loc, operands, op, types)))
    return failure();
  if (shapeOf(op.getBias()) != shapeOf(op.getWeight()))
    return inferenceFailure(loc, "weight and bias differ: ", printShape(shapeOf(op.getWeight())), " and ",
                            printShape(shapeOf(op.getBias())));
  return success();
}

SmallVector<HostTensor> NormalizeOp::evaluate(ArrayRef<HostTensor> operands, int64_t) {
  const HostTensor &x = operands[0];
  HostTensor y(x.shape);
  std::vector<double> weight = spreadHost(operands[1], getDims(), x.shape),
                      bias = spreadHost(operands[2], getDims(), x.shape);
  forEachNormRow(*this, x, [&](const HostNormRow &row) {
    for (size_t at = row.first; at < row.first + row.count; ++at)
      y.data[at] = (x.data[at] - row.mean) * row.inverseDeviation * weight[at] + bias[at];
  });
  return {y};
}

Value NormalizeOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  NormRow row(*this, builder, index);
  return row.centred(index) * row.scale() * row.ofVector(1, index) + row.ofVector(2, index);
}

// dWeight is summed from x^, which is rematerialized: only x is kept for it.
SmallVector<Value> NormalizeOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  Value dX = builder.create<NormalizeGradOp>(getLoc(), getX(), getWeight(), dResults[0], getAxis(), getDims(), getEps(),
                                             getRms());
  Node x = widened(Node(builder, getLoc(), getX())), dY = widened(Node(builder, getLoc(), dResults[0])),
       one = widened(Node(builder, getLoc(), getWeight())).like(1.0);
  Node xHat(builder, getLoc(),
            builder.create<NormalizeOp>(getLoc(), x, one, one.like(0.0), getAxis(), getDims(), getEps(), getRms()));
  SmallVector<int64_t> others;
  for (int64_t dim = 0; dim < x.type().getRank(); ++dim)
    if (!llvm::is_contained(getDims(), dim))
      others.push_back(dim);
  return {dX, castTo(sum(dY * xHat, others), elementOf(getX())), castTo(sum(dY, others), elementOf(getX()))};
}

/// Layers, groups, several dimensions, a weight with other dimensions than the normalized ones, and no weight.
SmallVector<Sample> NormalizeOp::samples() {
  auto sample = [](const std::string &attributes, const std::string &x, const std::string &vector) {
    std::string type = "tensor<" + x + "xf64>", vectorType = "tensor<" + vector + "f64>";
    return Sample{"\"sluice.normalize\"(%0, %1, %2) {" + attributes + "} : (" + type + ", " + vectorType + ", " +
                      vectorType + ") -> " + type,
                  {{-2, 2}, {0.5, 1.5}, {-1, 1}}};
  };
  return {sample("axis = 1 : i64, dims = array<i64: 1>, eps = 0.125 : f64", "?x5", "5x"),
          sample("axis = 2 : i64, dims = array<i64: 2>, eps = 1.0e-3 : f64, rms", "?x2x6", "6x"),
          sample("axis = 2 : i64, dims = array<i64: 1, 2>, eps = 0.25 : f64", "?x2x3x4", "2x3x"),
          sample("axis = 1 : i64, dims = array<i64: 1, 2>, eps = 0.125 : f64, rms", "3x4x2", "4x2x"),
          sample("axis = 0 : i64, dims = array<i64>, eps = 0.5 : f64", "7", "")};
}

//===- normalize_grad --------------------------------------------------------------------------------------------===//

LogicalResult NormalizeGradOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                                DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                                SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  if (failed(inferNorm(loc, operands, op, types)))
    return failure();
  if (shapeOf(op.getDy()) != shapeOf(op.getX()))
    return inferenceFailure(loc, "dY differs in shape from x: ", printShape(shapeOf(op.getDy())), " and ",
                            printShape(shapeOf(op.getX())));
  return success();
}

/// As in autograd, through the variance and the mean one after the other. So the reference checks the closed form.
SmallVector<HostTensor> NormalizeGradOp::evaluate(ArrayRef<HostTensor> operands, int64_t) {
  const HostTensor &x = operands[0], &dY = operands[2];
  HostTensor dX(x.shape);
  std::vector<double> weight = spreadHost(operands[1], getDims(), x.shape);
  forEachNormRow(*this, x, [&](const HostNormRow &row) {
    double dVar = 0, dMean = 0, cube = row.inverseDeviation * row.inverseDeviation * row.inverseDeviation;
    for (size_t at = row.first; at < row.first + row.count; ++at) {
      dVar += dY.data[at] * weight[at] * (x.data[at] - row.mean) * -0.5 * cube;
      dMean -= getRms() ? 0 : dY.data[at] * weight[at] * row.inverseDeviation;
    }
    for (size_t at = row.first; at < row.first + row.count; ++at)
      dX.data[at] = dY.data[at] * weight[at] * row.inverseDeviation +
                    (dVar * 2 * (x.data[at] - row.mean) + dMean) / double(row.count);
  });
  return {dX};
}

Value NormalizeGradOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  NormRow row(*this, builder, index);
  auto scaled = [&](ArrayRef<AffineExpr> at) { return row.operand(2, at) * row.ofVector(1, at); };
  auto xHat = [&](ArrayRef<AffineExpr> at) { return row.centred(at) * row.scale(); };
  Lane along = row.meanOf([&](ArrayRef<AffineExpr> at) { return scaled(at) * xHat(at); });
  Lane dX = scaled(index) - xHat(index) * along;
  if (!getRms())
    dX = dX - row.meanOf(scaled);
  return dX * row.scale();
}

SmallVector<Value> NormalizeGradOp::buildFormula(OpBuilder &builder) {
  auto wide = [&](Value operand) { return widened(Node(builder, getLoc(), operand)); };
  Node x = wide(getX());
  auto axes = llvm::to_vector(llvm::seq<int64_t>(getAxis(), x.type().getRank()));
  double count = double(countElements(x.type().getShape(), axes).known);
  auto meanOf = [&](Node value) { return expandOver(sum(value, axes) / count, axes, x.type()); };
  Node centred = getRms() ? x : x - meanOf(x), scale = rsqrt(meanOf(centred * centred) + getEps().convertToDouble()),
       xHat = centred * scale;
  Node scaled = wide(getDy()) * expand(wide(getWeight()), getDims(), x.type());
  Node dX = scaled - xHat * meanOf(scaled * xHat);
  if (!getRms())
    dX = dX - meanOf(scaled);
  return {castTo(dX * scale, elementOf(getX()))};
}

} // namespace sluice::ir
