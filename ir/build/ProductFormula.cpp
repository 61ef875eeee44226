// Products and convolutions as formulas: what backends make loop nests or products of.
//
//   y[..., i, j]   = sum over l of a[..., i, l] * b[..., l, j]
//   y[n, o, i, j]  = sum over c, u, v of x[n, g C + c, i * stride + u * dilation - pad, ...] * w[o, c, u, v]
//
// with C input channels and O output channels in a group, and g = o / O.
#include "ir/Dialect.h"
#include "ir/build/Fold.h"
#include "ir/build/WindowFormula.h"
#include "ir/ops/Inference.h"

using namespace mlir;

namespace sluice::ir {

static ArrayRef<int64_t> spatial(Value value) { return shapeOf(value).drop_front(2); }

/// The product of two operands' elements where `guard` holds.
static Value multiply(ElementBuilder &builder, const Guard &guard, Type element, SmallVector<AffineExpr> first,
                      SmallVector<AffineExpr> second) {
  auto product = [&builder, first, second]() -> Value {
    return Lane(builder.builder(), builder.loc(), builder.operand(0, first)) *
           Lane(builder.builder(), builder.loc(), builder.operand(1, second));
  };
  return guard.load(builder, product, builder.constant(0, element));
}

static int64_t extentOf(int64_t size) { return ShapedType::isDynamic(size) ? ElementBuilder::kRows : size; }

Value MatmulOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  ArrayRef<AffineExpr> leading = index.drop_back(2);
  size_t rank = index.size();
  int64_t contracted = shapeOf(getA())[rank - (getTransposeA() ? 2 : 1)];
  auto matrixAt = [&](AffineExpr row, AffineExpr column, bool transposed) {
    SmallVector<AffineExpr> at(leading);
    at.append({transposed ? column : row, transposed ? row : column});
    return at;
  };
  return fold(builder, extentOf(contracted), elementOf(getA()), 0, addLanes, [&](ArrayRef<AffineExpr> at) {
    return multiply(builder, Guard(), elementOf(getA()), matrixAt(index[rank - 2], at[0], getTransposeA()),
                    matrixAt(at[0], index[rank - 1], getTransposeB()));
  });
}

Value Conv2dOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  ArrayRef<int64_t> weight = shapeOf(getWeight());
  Windows windows = getWindows(spatial(getX()), weight.drop_front(2), getStride(), getPadding(), getDilation());
  int64_t channels = weight[1], outputs = weight[0] / getGroups();
  Type element = elementOf(getX());
  return fold(builder, weight.drop_front(), element, 0, addLanes, [&](ArrayRef<AffineExpr> at) {
    Guard guard;
    AffineExpr h = placeTap(windows[0], spatial(getY())[0], index[2], at[1], guard),
               w = placeTap(windows[1], spatial(getY())[1], index[3], at[2], guard);
    return multiply(builder, guard, element, {index[0], index[1].floorDiv(outputs) * channels + at[0], h, w},
                    {index[1], at[0], at[1], at[2]});
  });
}

Value Conv2dInputGradOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  ArrayRef<int64_t> weight = shapeOf(getWeight()), counts = spatial(getDy());
  Windows windows = getWindows(getSize(), weight.drop_front(2), getStride(), getPadding(), getDilation());
  int64_t channels = weight[1], outputs = weight[0] / getGroups();
  Type element = elementOf(getDy());
  int64_t extents[] = {outputs, countCandidates(windows[0]), countCandidates(windows[1])};
  return fold(builder, extents, element, 0, addLanes, [&](ArrayRef<AffineExpr> at) {
    Guard guard;
    Candidate row = placeCandidate(windows[0], counts[0], index[2], at[1], guard),
              column = placeCandidate(windows[1], counts[1], index[3], at[2], guard);
    AffineExpr output = index[1].floorDiv(channels) * outputs + at[0];
    return multiply(builder, guard, element, {index[0], output, row.position, column.position},
                    {output, index[1] % channels, row.tap, column.tap});
  });
}

Value Conv2dWeightGradOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  ArrayRef<int64_t> weight = shapeOf(getDweight()), dy = shapeOf(getDy());
  Windows windows = getWindows(spatial(getX()), getSize(), getStride(), getPadding(), getDilation());
  int64_t channels = weight[1], outputs = weight[0] / getGroups();
  Type element = elementOf(getX());
  return fold(builder, {extentOf(dy[0]), dy[2], dy[3]}, element, 0, addLanes, [&](ArrayRef<AffineExpr> at) {
    Guard guard;
    AffineExpr h = placeTap(windows[0], dy[2], at[1], index[2], guard),
               w = placeTap(windows[1], dy[3], at[2], index[3], guard);
    return multiply(builder, guard, element, {at[0], index[0].floorDiv(outputs) * channels + index[1], h, w},
                    {at[0], index[0], at[1], at[2]});
  });
}

} // namespace sluice::ir
