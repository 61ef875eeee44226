#include "backends/loops/SumNest.h"

#include "ir/Layout.h"

namespace sluice::loops {

using namespace mlir;

// Sums of halves are computed in f32, so the ordinary nest computes them as folds.
ir::CumSumOp findSums(ir::YieldOp yield) {
  auto op = yield.getNumOperands() == 1 ? yield.getOperand(0).getDefiningOp<ir::CumSumOp>() : ir::CumSumOp();
  return op && !ir::isHalf(op.getY().getType().getElementType()) ? op : ir::CumSumOp();
}

RankedTensorType columnsOf(RankedTensorType type, int64_t axis) {
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = 1;
  bool isCut = llvm::any_of(*ir::getPhysicalDims(type), [&](const ir::PhysicalDim &dim) {
    return dim.logical == axis && dim.kind != ir::PhysicalDim::Whole;
  });
  return RankedTensorType::get(shape, type.getElementType(), isCut ? Attribute() : type.getEncoding());
}

/// Conditions (>= 0) that the indices of a column, except along the axis, are less than their sizes: the last tile may
/// have padding, which stays zero.
static SmallVector<AffineExpr> insideOf(RankedTensorType type, int64_t axis, ArrayRef<AffineExpr> column) {
  SmallVector<AffineExpr> inside;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (int64_t(dim) != axis && !ShapedType::isDynamic(size))
      inside.push_back(size - 1 - column[dim]);
  return inside;
}

void fillWithSums(LoopNest &nest, ir::CumSumOp op, Memory y, Formulas &formulas) {
  const Reduction &sum = *formulas.of(op, 0)->reductions.front();
  Operation *addition = std::get<Arithmetic>(sum.combine.steps.back().what).op;
  int64_t axis = op.getAxis(), size = y.type.getDimSize(axis);
  Type element = y.type.getElementType();
  nest.folds = true;
  nest.bytesPerElement = 2 * double(size * ir::getElementBytes(element));
  nest.body = [=](Emitter &emitter, Elements &elements, AffineExpr, ArrayRef<AffineExpr> column) mutable {
    Scopes &scopes = elements.scopes();
    Element zero = elements.zero(element);
    scopes.loop(
        emitter.constant(0), emitter.constant(size), 1, size, {zero}, [&](Count number, ArrayRef<Element> before) {
          AffineExpr step = scopes.variable(number, {0, size - 1});
          SmallVector<AffineExpr> at(column);
          at[axis] = op.getReverse() ? size - 1 - step : step;
          Element term =
              elements.guarded(insideOf(y.type, axis, column), [&] { return elements.element(op.getX(), at); }, zero);
          Element next = emitter.apply(addition, {before[0], term});
          elements.store(y, elements.offsetOf(y.type, at), op.getExclusive() ? before[0] : next);
          return Scopes::Carried{next};
        });
  };
}

} // namespace sluice::loops
