// Cumulative sums.
#include "ir/Dialect.h"
#include "ir/build/Fold.h"
#include "ir/build/Node.h"
#include "ir/ops/Inference.h"

using namespace mlir;

namespace sluice::ir {

LogicalResult CumSumOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                         DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                         SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  ArrayRef<int64_t> x = shapeOf(op.getX());
  int64_t axis = op.getAxis();
  if (failed(checkAxes(loc, axis, x)))
    return failure();
  if (ShapedType::isDynamic(x[axis]))
    return inferenceFailure(loc, "the rows of a call are not summed one after another: axis ", axis, " of ",
                            printShape(x));
  return addResult(loc, x, elementOf(op.getX()), types);
}

SmallVector<HostTensor> CumSumOp::evaluate(ArrayRef<HostTensor> operands, int64_t) {
  const HostTensor &x = operands[0];
  HostTensor y(x.shape);
  SmallVector<int64_t> lines(x.shape);
  int64_t axis = getAxis(), size = lines[axis];
  lines[axis] = 1;
  forEachIndex(lines, [&](ArrayRef<int64_t> line) {
    SmallVector<int64_t> at(line);
    double sum = 0;
    for (int64_t step = 0; step < size; ++step) {
      at[axis] = getReverse() ? size - 1 - step : step;
      double before = sum;
      sum += x.at(at);
      y.at(at) = getExclusive() ? before : sum;
    }
  });
  return {y};
}

// Each element of y visits all elements of its line. Backends that recognize the op compute the same with fewer steps.
Value CumSumOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> at) {
  int64_t axis = getAxis();
  Type element = elementOf(getX());
  auto term = [&](ArrayRef<AffineExpr> index) -> Value {
    SmallVector<AffineExpr> of(at);
    of[axis] = index[0];
    AffineExpr ahead = (getReverse() ? index[0] - at[axis] : at[axis] - index[0]) - (getExclusive() ? 1 : 0);
    return builder.guarded(
        {ahead}, [&] { return builder.operand(0, of); }, builder.constant(0, getLaneElement(element)));
  };
  return sluice::ir::fold(builder, shapeOf(getX())[axis], element, 0, addLanes, term);
}

SmallVector<Value> CumSumOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  return {builder.create<CumSumOp>(getLoc(), dResults[0], getAxis(), getExclusive(), !getReverse())};
}

bool CumSumOp::isLinearIn(ArrayRef<bool>) { return true; }

SmallVector<Sample> CumSumOp::samples() {
  auto sample = [](const std::string &attributes, const std::string &shape) {
    return Sample{"\"sluice.cumsum\"(%0) {" + attributes + "} : (tensor<" + shape + "xf64>) -> tensor<" + shape +
                      "xf64>",
                  {{-2, 2}}};
  };
  return {sample("axis = 1 : i64", "?x5"), sample("axis = 1 : i64, exclusive", "?x4x3"),
          sample("axis = 0 : i64, reverse", "6x?"), sample("axis = 2 : i64, exclusive, reverse", "?x2x19"),
          sample("axis = 0 : i64", "1")};
}

} // namespace sluice::ir
