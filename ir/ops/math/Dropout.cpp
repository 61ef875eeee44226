// Dropout: PyTorch's semantics, and its expansion into random numbers that are drawn where they are needed.
#include "ir/Dialect.h"
#include "ir/build/Node.h"
#include "ir/ops/Inference.h"
#include "ir/ops/math/Random.h"

using namespace mlir;

namespace sluice::ir {

LogicalResult DropoutOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                          DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                          SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  if (failed(checkKey(loc, op.getKey())) || failed(checkProbability(loc, op.getP())))
    return failure();
  return addResult(loc, shapeOf(op.getX()), elementOf(op.getX()), types);
}

/// The type of the mask that is true where an element is dropped.
static RankedTensorType typeOfDropped(DropoutOp op) {
  return RankedTensorType::get(shapeOf(op.getX()), IntegerType::get(op.getContext(), 1));
}

/// The scale of the remaining elements; 0 if none remain.
static double scaleOf(DropoutOp op) {
  double kept = 1 - op.getP().convertToDouble();
  return kept > 0 ? 1 / kept : 0;
}

SmallVector<HostTensor> DropoutOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  HostTensor y = operands[0];
  if (!getTraining())
    return {y};
  HostTensor dropped = drawBernoulli(operands[1], /*first=*/0, getStream(), getP(), typeOfDropped(*this), rows);
  for (auto [element, isDropped] : llvm::zip_equal(y.data, dropped.data))
    element = isDropped ? 0 : element * scaleOf(*this);
  return {y};
}

SmallVector<Value> DropoutOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  return {builder.create<DropoutOp>(getLoc(), dResults[0], getKey(), getP(), getStream(), getTraining()), Value()};
}

SmallVector<Sample> DropoutOp::samples() {
  auto sample = [](const char *attributes, const std::string &x) {
    return Sample{std::string("\"sluice.dropout\"(%0, %1) {") + attributes + "} : (" + x + ", tensor<2xi32>) -> " + x,
                  {{-2, 2}, {-1e9, 1e9}},
                  {1}};
  };
  return {sample("p = 0.25 : f64, stream = 0 : i64, training", "tensor<?x5xf64>"),
          sample("p = 0.5 : f64, stream = -3 : i64, training", "tensor<4x?x3xf64>"),
          sample("p = 1.0 : f64, stream = 1 : i64, training", "tensor<3x2xf64>"),
          sample("p = 0.5 : f64, stream = 2 : i64", "tensor<3x2xf64>")};
}

SmallVector<Value> DropoutOp::expand(OpBuilder &builder) {
  if (!getTraining())
    return {getX()};
  Value drawn =
      builder.create<BernoulliOp>(getLoc(), getKey(), /*first=*/Value(), getStream(), getP(), typeOfDropped(*this));
  Node x(builder, getLoc(), getX()), dropped(builder, getLoc(), drawn);
  return {where(dropped, 0.0, castTo(widened(x) * scaleOf(*this), elementOf(x)))};
}

bool DropoutOp::isExpandedEarly() { return true; }

void DropoutOp::setTraining() { setTraining(true); }

Value DropoutOp::getUnchanged() { return getTraining() ? Value() : getX(); }

} // namespace sluice::ir
