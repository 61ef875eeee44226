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

namespace {
/// A term of a sum of products: the indices of the factors in both operands, and the condition under which they exist.
struct Term {
  SmallVector<AffineExpr> a, b;
  Guard guard = {};
};
} // namespace

static Lane factor(ElementBuilder &builder, unsigned operand, ArrayRef<AffineExpr> index) {
  return Lane(builder.builder(), builder.loc(), builder.operand(operand, index));
}

/// The sum of the products of two operands' elements, by fused multiply-adds.
static Value sumProducts(ElementBuilder &builder, ArrayRef<int64_t> extents, Type element,
                         llvm::function_ref<Term(ArrayRef<AffineExpr>)> termAt) {
  return accumulate(builder, extents, element, 0, addLanes, [&](ArrayRef<AffineExpr> at, Value before) {
    Term term = termAt(at);
    auto add = [&builder, term, before]() -> Value {
      return multiplyAdd(factor(builder, 0, term.a), factor(builder, 1, term.b),
                         Lane(builder.builder(), builder.loc(), before));
    };
    return term.guard.load(builder, add, before);
  });
}

static int64_t extentOf(int64_t size) { return ShapedType::isDynamic(size) ? ElementBuilder::kRows : size; }

Value EinsumOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  Equation letters = getLetters();
  SummedLetters summed = getSummedLetters(letters, shapeOf(getA()));
  SmallVector<int64_t> extents = llvm::map_to_vector(summed.sizes, extentOf);
  auto termAt = [&](ArrayRef<AffineExpr> at) -> Term {
    auto indexOf = [&](StringRef operand) {
      return llvm::map_to_vector(operand, [&](char letter) {
        size_t place = letters.y.find(letter);
        return place != std::string::npos ? index[place] : at[summed.letters.find(letter)];
      });
    };
    return {indexOf(letters.a), indexOf(letters.b)};
  };
  if (!extents.empty())
    return sumProducts(builder, extents, elementOf(getA()), termAt);
  Term one = termAt({});
  return factor(builder, 0, one.a) * factor(builder, 1, one.b);
}

Value Conv2dOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  ArrayRef<int64_t> weight = shapeOf(getWeight());
  Windows windows = getWindows(spatial(getX()), weight.drop_front(2), getStride(), getPadding(), getDilation());
  int64_t channels = weight[1], outputs = weight[0] / getGroups();
  Type element = elementOf(getX());
  return sumProducts(builder, weight.drop_front(), element, [&](ArrayRef<AffineExpr> at) -> Term {
    Guard guard;
    AffineExpr h = placeTap(windows[0], spatial(getY())[0], index[2], at[1], guard),
               w = placeTap(windows[1], spatial(getY())[1], index[3], at[2], guard);
    return {{index[0], index[1].floorDiv(outputs) * channels + at[0], h, w}, {index[1], at[0], at[1], at[2]}, guard};
  });
}

Value Conv2dInputGradOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  ArrayRef<int64_t> weight = shapeOf(getWeight()), counts = spatial(getDy());
  Windows windows = getWindows(getSize(), weight.drop_front(2), getStride(), getPadding(), getDilation());
  int64_t channels = weight[1], outputs = weight[0] / getGroups();
  Type element = elementOf(getDy());
  int64_t extents[] = {outputs, countCandidates(windows[0]), countCandidates(windows[1])};
  return sumProducts(builder, extents, element, [&](ArrayRef<AffineExpr> at) -> Term {
    Guard guard;
    Candidate row = placeCandidate(windows[0], counts[0], index[2], at[1], guard),
              column = placeCandidate(windows[1], counts[1], index[3], at[2], guard);
    AffineExpr output = index[1].floorDiv(channels) * outputs + at[0];
    return {
        {index[0], output, row.position, column.position}, {output, index[1] % channels, row.tap, column.tap}, guard};
  });
}

Value Conv2dWeightGradOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  ArrayRef<int64_t> weight = shapeOf(getDweight()), dy = shapeOf(getDy());
  Windows windows = getWindows(spatial(getX()), getSize(), getStride(), getPadding(), getDilation());
  int64_t channels = weight[1], outputs = weight[0] / getGroups();
  Type element = elementOf(getX());
  return sumProducts(builder, {extentOf(dy[0]), dy[2], dy[3]}, element, [&](ArrayRef<AffineExpr> at) -> Term {
    Guard guard;
    AffineExpr h = placeTap(windows[0], dy[2], at[1], index[2], guard),
               w = placeTap(windows[1], dy[3], at[2], index[3], guard);
    return {{at[0], index[0].floorDiv(outputs) * channels + index[1], h, w}, {at[0], index[0], at[1], at[2]}, guard};
  });
}

} // namespace sluice::ir
