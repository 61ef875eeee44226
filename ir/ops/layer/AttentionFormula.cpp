#include "ir/ops/layer/AttentionFormula.h"
#include "ir/build/Node.h"
#include "ir/ops/Inference.h"
#include <limits>

using namespace mlir;

namespace sluice::ir {

namespace {

/// Values of an attention op in accumulator type, with the heads that share keys as a separate dimension: q [B, Hk, G,
/// T, D], k [B, Hk, S, D], scores [B, Hk, G, T, S].
template <typename Op> class AttentionParts {
public:
  AttentionParts(OpBuilder &builder, Op op)
      : builder(builder), op(op), heads(shapeOf(op.getK())[1]), group(shapeOf(op.getQ())[1] / heads) {}

  Node wide(Value value) { return widened(Node(builder, op.getLoc(), value)); }
  /// [B, H, ...] as [B, Hk, G, ...], and back.
  Node inGroups(Value value) {
    SmallVector<int64_t> shape(shapeOf(value));
    shape[1] = group;
    shape.insert(shape.begin() + 1, heads);
    return reshape(wide(value), shape);
  }
  Value joined(Node node, Type element) {
    SmallVector<int64_t> shape(node.type().getShape());
    shape[1] *= shape[2];
    shape.erase(shape.begin() + 2);
    return castTo(reshape(node, shape), element);
  }
  Node product(Node a, Node b, const char *equation) {
    return Node(builder, op.getLoc(), builder.create<EinsumOp>(op.getLoc(), a, b, equation));
  }
  double scale() { return op.getScale().convertToDouble(); }

  Node scores() {
    Node scores = product(inGroups(op.getQ()), wide(op.getK()), "abcde,abfe->abcdf") * scale();
    if (op.getMask())
      scores = scores + additiveMask(scores.type());
    return op.getCausal() ? where(isVisible(scores.type()), scores, kHidden) : scores;
  }

  /// e^(score - logsumexp); 0 where both are -inf.
  Node probabilities() {
    Node all = scores(), total = expandOver(inGroups(op.getLogsumexp()), {4}, all.type());
    return exp(all - where(total == kHidden, 0.0, total));
  }

  Node scoreGradients(Node p) {
    Node dP = product(inGroups(op.getDy()), wide(op.getV()), "abcde,abfe->abcdf");
    return p * (dP - expandOver(inGroups(op.getDelta()), {4}, dP.type()));
  }

  static constexpr double kHidden = -std::numeric_limits<double>::infinity();

private:
  /// In the shape of the scores: broadcast along dimensions with one element.
  Node additiveMask(RankedTensorType type) {
    Node mask(builder, op.getLoc(), op.getMask());
    if (mask.type().getElementType().isInteger(1)) {
      Node hidden = full(builder, op.getLoc(), kHidden, withElement(mask.type(), type.getElementType()));
      mask = where(mask, 0.0, hidden);
    }
    return repeated(castTo(mask, type.getElementType()), type);
  }

  Node repeated(Node mask, RankedTensorType type) {
    SmallVector<int64_t> shape(mask.type().getShape()), kept, dims;
    bool ofHeads = shape[1] != 1;
    if (ofHeads) {
      shape[1] = group;
      shape.insert(shape.begin() + 1, heads);
    } else {
      shape.insert(shape.begin() + 1, 1);
    }
    for (auto [dim, size] : llvm::enumerate(shape))
      if (size != 1 || type.getDimSize(dim) == 1) {
        kept.push_back(size);
        dims.push_back(int64_t(dim));
      }
    return expand(reshape(mask, kept), dims, type);
  }

  /// Whether s <= t.
  Node isVisible(RankedTensorType type) {
    RankedTensorType places = withElement(type, builder.getI32Type());
    auto along = [&](int64_t axis) {
      return Node(builder, op.getLoc(),
                  builder.create<IotaOp>(op.getLoc(), APFloat(0.0), APFloat(1.0), axis, withoutEncoding(places)));
    };
    return along(4) <= along(3);
  }

  OpBuilder &builder;
  Op op;
  int64_t heads, group;
};

} // namespace

SmallVector<Value> ScaledDotProductAttentionOp::expand(OpBuilder &builder) {
  AttentionParts parts(builder, *this);
  Node scores = parts.scores();
  Node largest(builder, getLoc(), builder.create<ReduceMaxOp>(getLoc(), scores, ArrayRef<int64_t>{4}, false));
  Node shift = where(largest == parts.kHidden, 0.0, largest); // 0 for a query that attends to no key
  Node p = exp(scores - expandOver(shift, {4}, scores.type())), total = sum(p, {4});
  Node y = parts.product(p, parts.wide(getV()), "abcde,abef->abcdf");
  y = y / expandOver(where(total == 0.0, 1.0, total), {4}, y.type());
  Type element = elementOf(getQ());
  return {parts.joined(y, element), parts.joined(shift + log(total), getAccumulator(element))};
}

SmallVector<Value> AttentionQueryGradOp::expand(OpBuilder &builder) {
  AttentionParts parts(builder, *this);
  Node dScores = parts.scoreGradients(parts.probabilities());
  Node dQ = parts.product(dScores, parts.wide(getK()), "abcde,abef->abcdf") * parts.scale();
  return {parts.joined(dQ, elementOf(getQ()))};
}

SmallVector<Value> AttentionKeyValueGradOp::expand(OpBuilder &builder) {
  AttentionParts parts(builder, *this);
  Node p = parts.probabilities(), dScores = parts.scoreGradients(p);
  Node dK = parts.product(dScores, parts.inGroups(getQ()), "abcde,abcdf->abef") * parts.scale();
  Node dV = parts.product(p, parts.inGroups(getDy()), "abcde,abcdf->abef");
  return {castTo(dK, elementOf(getK())), castTo(dV, elementOf(getV()))};
}

SmallVector<Value> AttentionQueryGradOp::buildFormula(OpBuilder &builder) { return expand(builder); }
SmallVector<Value> AttentionKeyValueGradOp::buildFormula(OpBuilder &builder) { return expand(builder); }

Value buildMaskGradient(OpBuilder &builder, AttentionKeyValueGradOp op) {
  AttentionParts parts(builder, op);
  Type element = elementOf(op.getMask());
  Node scores(builder, op.getLoc(), parts.joined(parts.scoreGradients(parts.probabilities()), element));
  SmallVector<int64_t> repeated;
  for (auto [dim, size] : llvm::enumerate(shapeOf(op.getMask())))
    if (size == 1 && scores.type().getDimSize(dim) != 1)
      repeated.push_back(int64_t(dim));
  return castTo(sum(widened(scores), repeated, /*keepdims=*/true), element);
}

} // namespace sluice::ir
