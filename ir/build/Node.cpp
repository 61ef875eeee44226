#include "ir/build/Node.h"
#include "ir/Dialect.h"
#include "ir/ops/Inference.h"

using namespace mlir;

namespace sluice::ir {

template <typename Op, typename... Args> static Node create(Node a, Args &&...args) {
  return Node(*a.builder, a.loc, a.builder->create<Op>(a.loc, std::forward<Args>(args)...)->getResult(0));
}

template <typename Op> static Node unary(Node a) { return create<Op>(a, a.value); }
template <typename Op> static Node binary(Node a, Node b) { return create<Op>(a, a.value, b.value); }
static Node compare(Node a, Node b, Predicate predicate) { return create<CompareOp>(a, a.value, b.value, predicate); }

Node full(OpBuilder &builder, Location loc, double constant, RankedTensorType type) {
  return Node(builder, loc, builder.create<FullOp>(loc, APFloat(constant), withoutEncoding(type)));
}

Node iota(OpBuilder &builder, Location loc, RankedTensorType type) {
  return Node(builder, loc,
              builder.create<IotaOp>(loc, builder.getF64FloatAttr(0), builder.getF64FloatAttr(1),
                                     builder.getI64IntegerAttr(0), TypeAttr::get(withoutEncoding(type))));
}

Node rowCount(OpBuilder &builder, Location loc, Type element) {
  return Node(builder, loc, builder.create<RowsOp>(loc, element));
}

Node Node::like(double constant) const { return full(*builder, loc, constant, type()); }

Node Node::least() const {
  Type element = type().getElementType();
  if (isa<FloatType>(element))
    return like(leastOf(element));
  auto value = IntegerAttr::get(element, APInt::getSignedMinValue(element.getIntOrFloatBitWidth()));
  return create<ConstantOp>(*this, DenseElementsAttr::get(withoutEncoding(type()), Attribute(value)));
}

Node operator-(Node a) { return unary<NegOp>(a); }
Node operator+(Node a, Node b) { return binary<AddOp>(a, b); }
Node operator-(Node a, Node b) { return binary<SubOp>(a, b); }
Node operator*(Node a, Node b) { return binary<MulOp>(a, b); }
Node operator/(Node a, Node b) { return binary<DivOp>(a, b); }
Node operator>(Node a, Node b) { return compare(a, b, Predicate::gt); }
Node operator<(Node a, Node b) { return compare(a, b, Predicate::lt); }
Node operator>=(Node a, Node b) { return compare(a, b, Predicate::ge); }
Node operator<=(Node a, Node b) { return compare(a, b, Predicate::le); }
Node operator==(Node a, Node b) { return compare(a, b, Predicate::eq); }
Node operator!(Node a) { return unary<NotOp>(a); }
Node where(Node condition, Node a, Node b) { return create<WhereOp>(a, condition.value, a.value, b.value); }
Node maximum(Node a, Node b) { return binary<MaxOp>(a, b); }
Node copied(Node a) { return unary<IdentityOp>(a); }
Node pow(Node a, Node b) { return binary<PowOp>(a, b); }
Node max(Node a, Node b) { return binary<MaxOp>(a, b); }
Node abs(Node a) { return unary<AbsOp>(a); }
Node sign(Node a) { return unary<SignOp>(a); }
Node round(Node a) { return unary<RoundOp>(a); }
Node exp(Node a) { return unary<ExpOp>(a); }
Node log(Node a) { return unary<LogOp>(a); }
Node sin(Node a) { return unary<SinOp>(a); }
Node cos(Node a) { return unary<CosOp>(a); }
Node sinh(Node a) { return unary<SinhOp>(a); }
Node cosh(Node a) { return unary<CoshOp>(a); }
Node tanh(Node a) { return unary<TanhOp>(a); }
Node sigmoid(Node a) { return unary<SigmoidOp>(a); }
Node sqrt(Node a) { return unary<SqrtOp>(a); }
Node rsqrt(Node a) { return unary<RsqrtOp>(a); }

bool isZero(Value value) {
  auto constant = value.getDefiningOp<FullOp>();
  return constant && constant.getValue().isZero();
}

Node castTo(Node a, Type element) {
  return a.type().getElementType() == element ? a : create<CastOp>(a, a.value, element);
}

Node widened(Node a) {
  Type element = a.type().getElementType();
  return isHalf(element) ? castTo(a, getAccumulator(element)) : a;
}

Node sum(Node a, ArrayRef<int64_t> axes, bool keepdims) {
  return axes.empty() ? a : create<SumOp>(a, a.value, axes, keepdims);
}

Node reshape(Node a, ArrayRef<int64_t> shape) {
  return a.type().getShape() == shape ? a : create<ReshapeOp>(a, a.value, shape);
}

Node padded(Node a, int64_t size) {
  int64_t behind = size - a.type().getDimSize(0);
  return behind == 0
             ? a
             : create<PadOp>(a, a.value, ArrayRef<int64_t>{0}, ArrayRef(behind), ArrayRef<int64_t>{0}, APFloat(0.0));
}

Node leading(Node a, int64_t size) {
  if (a.type().getDimSize(0) == size)
    return a;
  return create<SliceOp>(a, a.value, ArrayRef<int64_t>{0}, ArrayRef(size), ArrayRef<int64_t>{1});
}

Node columns(Node a, int64_t begin, int64_t size) {
  SmallVector<int64_t> from(size_t(a.type().getRank()), 0), to(a.type().getShape()), step(from.size(), 1);
  from.back() = begin;
  to.back() = begin + size;
  return create<SliceOp>(a, a.value, from, to, step);
}

Node joined(ArrayRef<Node> nodes, int64_t axis) {
  auto values = llvm::map_to_vector(nodes, [](Node node) { return node.value; });
  return create<ConcatOp>(nodes.front(), values, axis);
}

Node at(Node a, Node place) { return create<GatherOp>(a, a.value, place.value, /*axis=*/0); }

Node addedAt(Node a, Node places, int64_t size) {
  return create<ScatterAddOp>(a, a.value, places.value, /*axis=*/0, size);
}

Node expand(Node a, ArrayRef<int64_t> dims, RankedTensorType type) {
  if (a.type().getShape() == type.getShape())
    return a;
  return create<ExpandOp>(a, a.value, dims, type.getShape());
}

Node expandOver(Node a, ArrayRef<int64_t> axes, RankedTensorType type) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (!llvm::is_contained(axes, dim))
      dims.push_back(dim);
  return expand(a, dims, type);
}

Node sliceAt(Node x, Value index, int64_t axis) { return create<GatherOp>(x, x.value, index, axis); }

Node updatedAt(Node x, Node part, Value index, int64_t axis) {
  return create<DynamicUpdateSliceOp>(x, x.value, part.value, index, axis, /*in_place=*/false);
}

Node withSliceAt(Node x, Node slice, Value index, int64_t axis) {
  SmallVector<int64_t> shape(x.type().getShape());
  shape[axis] = 1;
  return updatedAt(x, expandOver(slice, axis, withShape(x.type(), shape)), index, axis);
}

Node count(Node x, ArrayRef<int64_t> axes, Node like) {
  ElementCount number = countElements(x.type().getShape(), axes);
  if (!number.rows)
    return like.like(double(number.known));
  Node rows = rowCount(*x.builder, x.loc, x.type().getElementType());
  return expand(number.known == 1 ? rows : rows * double(number.known), {}, like.type());
}

Node geluGradient(Node a, Node dY, bool tanhForm) {
  if (!tanhForm)
    return dY * (0.5 * (1.0 + unary<ErfOp>(a * 0.7071067811865476)) + a * exp(-0.5 * a * a) * 0.3989422804014327);
  Node t = tanh(0.7978845608028654 * (a + 0.044715 * a * a * a));
  return dY * (0.5 * (1.0 + t) + 0.5 * a * (1.0 - t * t) * 0.7978845608028654 * (1.0 + 0.134145 * a * a));
}

} // namespace sluice::ir
