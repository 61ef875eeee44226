// Products and convolutions as formulas, from which backends build loop nests or products.
//
//   y[letters]     = sum over the other letters of a[letters] * b[letters]
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
static Value multiplyElements(ElementBuilder &builder, const Guard &guard, Type element, SmallVector<AffineExpr> first,
                              SmallVector<AffineExpr> second) {
  auto product = [&builder, first, second]() -> Value {
    return Lane(builder.builder(), builder.loc(), builder.operand(0, first)) *
           Lane(builder.builder(), builder.loc(), builder.operand(1, second));
  };
  return guard.load(builder, product, builder.constant(0, element));
}

static int64_t extentOf(int64_t size) { return ShapedType::isDynamic(size) ? ElementBuilder::kRows : size; }

Value EinsumOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  Equation letters = getLetters();
  SummedLetters summed = getSummedLetters(letters, shapeOf(getA()));
  SmallVector<int64_t> extents = llvm::map_to_vector(summed.sizes, extentOf);
  auto product = [&](ArrayRef<AffineExpr> at) -> Value {
    auto indexOf = [&](StringRef operand) {
      return llvm::map_to_vector(operand, [&](char letter) {
        size_t place = letters.y.find(letter);
        return place != std::string::npos ? index[place] : at[summed.letters.find(letter)];
      });
    };
    return multiplyElements(builder, Guard(), elementOf(getA()), indexOf(letters.a), indexOf(letters.b));
  };
  return extents.empty() ? product({}) : fold(builder, extents, elementOf(getA()), 0, addLanes, product);
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
    return multiplyElements(builder, guard, element, {index[0], index[1].floorDiv(outputs) * channels + at[0], h, w},
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
    return multiplyElements(builder, guard, element, {index[0], output, row.position, column.position},
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
    return multiplyElements(builder, guard, element, {at[0], index[0].floorDiv(outputs) * channels + index[1], h, w},
                            {at[0], index[0], at[1], at[2]});
  });
}

} // namespace sluice::ir
