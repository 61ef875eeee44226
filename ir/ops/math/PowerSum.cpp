// Sums of powers of differences, for moments whose sums are exchanged at once.
#include "ir/Dialect.h"
#include "ir/build/Fold.h"
#include "ir/build/Lane.h"
#include "ir/ops/Inference.h"

using namespace mlir;

namespace sluice::ir {

LogicalResult PowerSumOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                           DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                           SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  ArrayRef<int64_t> x = shapeOf(op.getX());
  if (x.size() < 2 || ShapedType::isDynamic(x[1]))
    return inferenceFailure(loc, "sums for channels need [N, C, ...] with a known number of channels; got ",
                            printShape(x));
  if (shapeOf(op.getShift()) != x.slice(1, 1))
    return inferenceFailure(loc, "shift differs from the channels: ", printShape(shapeOf(op.getShift())), " and ",
                            printShape(x));
  if (op.getPower() != 1 && op.getPower() != 2)
    return inferenceFailure(loc, "power is 1 or 2; got ", int64_t(op.getPower()));
  return addResult(loc, x[1], elementOf(op.getShift()), types);
}

SmallVector<HostTensor> PowerSumOp::evaluate(ArrayRef<HostTensor> operands, int64_t) {
  HostTensor y(operands[1].shape);
  forEachIndex(operands[0].shape, [&](ArrayRef<int64_t> index) {
    double moved = operands[0].at(index) - operands[1].data[size_t(index[1])];
    y.data[size_t(index[1])] += getPower() == 1 ? moved : moved * moved;
  });
  return {y};
}

Value PowerSumOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  SmallVector<int64_t> extents(shapeOf(getX()));
  extents.erase(extents.begin() + 1);
  Type wide = elementOf(getY());
  auto lane = [&](Value value) { return castTo(Lane(builder.builder(), builder.loc(), value), wide, false, false); };
  return fold(builder, extents, wide, 0, addLanes, [&](ArrayRef<AffineExpr> inner) -> Value {
    SmallVector<AffineExpr> source(inner);
    source.insert(source.begin() + 1, index[0]);
    Lane moved = lane(builder.operand(0, source)) - lane(builder.operand(1, index));
    return getPower() == 1 ? moved : moved * moved;
  });
}

RowFlow PowerSumOp::getRowFlow() { return RowFlow::Sum; }

} // namespace sluice::ir
