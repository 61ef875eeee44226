// Elementwise functions: one tensor, two tensors with broadcasting, a tensor and a number, where.
#include "frontend/graph/Call.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace sluice {

using detail::Call;
using detail::Rows;

//===- one tensor -------------------------------------------------------------------------------------------------===//

template <class Op> static Tensor unary(const char *name, const Arg &x, ArrayRef<NamedAttribute> attributes = {}) {
  Call call(name, x, Rows::merged);
  call.requireFloat(x.tensor);
  return call.emit<Op>({x.tensor}, attributes);
}

#define SLUICE_FLOATS(name, op)                                                                                        \
  Tensor name(Arg x) { return unary<ir::op>(#name, x); }
SLUICE_FLOAT_FUNCTIONS(SLUICE_FLOATS)
#undef SLUICE_FLOATS

Tensor identity(Arg x) { return unary<ir::IdentityOp>("identity", x); }

static void requireNumber(const Call &call, const Tensor &x) {
  if (x.dtype() == DType::boolean)
    call.fail("works on numbers, not bool; convert with .to(f32)");
}

template <class Op> static Tensor unaryOfNumber(const char *name, const Arg &x) {
  Call call(name, x, Rows::merged);
  requireNumber(call, x.tensor);
  return call.emit<Op>({x.tensor});
}

#define SLUICE_NUMBERS(name, op)                                                                                       \
  Tensor name(Arg x) { return unaryOfNumber<ir::op>(#name, x); }
SLUICE_NUMBER_FUNCTIONS(SLUICE_NUMBERS)
#undef SLUICE_NUMBERS

Tensor operator-(Arg x) { return unaryOfNumber<ir::NegOp>("-", x); }

Tensor leaky_relu(Arg x, double negative_slope) {
  Call call("leaky_relu", x, Rows::merged);
  call.requireFloat(x.tensor);
  return call.emit<ir::LeakyReluOp>({x.tensor}, call.real("alpha", negative_slope));
}

Tensor elu(Arg x, double alpha) {
  Call call("elu", x, Rows::merged);
  call.requireFloat(x.tensor);
  return call.emit<ir::EluOp>({x.tensor}, call.real("alpha", alpha));
}

Tensor gelu(Arg x, Gelu approximate) {
  Call call("gelu", x, Rows::merged);
  call.requireFloat(x.tensor);
  SmallVector<NamedAttribute> attributes;
  if (approximate == Gelu::tanh)
    attributes.push_back(call.unit("tanh"));
  return call.emit<ir::GeluOp>({x.tensor}, attributes);
}

/// Adds the attribute of a bound unless the bound has no effect: no value of the dtype exceeds `limit`.
static void addBound(Call &call, const Tensor &x, StringRef name, double bound, double limit,
                     SmallVectorImpl<NamedAttribute> &attributes) {
  if (bound == limit)
    return;
  if (!is_float(x.dtype()) && std::trunc(bound) != bound)
    call.fail("the bound " + std::to_string(bound) + " is not a value of " + to_string(x.dtype()) +
              "; convert with .to(f32)");
  attributes.push_back(call.real(name, bound));
}

static Tensor clipAs(const char *name, const Arg &x, std::optional<double> min, std::optional<double> max) {
  Call call(name, x, Rows::merged);
  requireNumber(call, x.tensor);
  auto [least, most] = detail::rangeOf(x.tensor.dtype());
  double low = std::max(min.value_or(least), least), high = std::min(max.value_or(most), most);
  if (!(min.value_or(least) <= max.value_or(most)) || !(low <= high))
    call.fail("the minimum " + std::to_string(min.value_or(least)) + " is above the maximum " +
              std::to_string(max.value_or(most)));
  SmallVector<NamedAttribute> attributes;
  addBound(call, x.tensor, "min", low, least, attributes);
  addBound(call, x.tensor, "max", high, most, attributes);
  return call.emit<ir::ClipOp>({x.tensor}, attributes);
}

Tensor clip(Arg x, std::optional<double> min, std::optional<double> max) { return clipAs("clip", x, min, max); }
Tensor clamp(Arg x, std::optional<double> min, std::optional<double> max) { return clipAs("clamp", x, min, max); }

Tensor cast(Arg x, DType dtype) { return Call("cast", x, Rows::merged).cast(x.tensor, dtype); }
Tensor stop_gradient(Arg x) { return Call("stop_gradient", x, Rows::merged).emit<ir::StopGradientOp>({x.tensor}); }

static void requireBool(const Call &call, const char *operand, const Tensor &x) {
  if (x.dtype() != DType::boolean)
    call.fail(std::string(operand) + " is " + to_string(x.dtype()) + ", not bool");
}

static void requireLogical(const Call &call, const Tensor &x) { requireBool(call, "an operand", x); }

static Tensor negated(const char *name, const Tensor &x, const SourceLocation &location) {
  Call call(name, {x}, location, Rows::merged);
  requireBool(call, "the operand", x);
  return call.emit<ir::NotOp>({x});
}

Tensor logical_not(Arg x) { return negated("logical_not", x.tensor, x.where); }
Tensor operator!(const Tensor &x) {
  return negated("!", x, x ? detail::locationOf(detail::Access::value(x).getLoc()) : SourceLocation());
}

static void requireInteger(const Call &call, const Tensor &x) {
  if (is_float(x.dtype()) || x.dtype() == DType::boolean)
    call.fail(std::string("works on integers, not ") + to_string(x.dtype()));
}
static void requireBits(const Call &call, const Tensor &x) {
  if (is_float(x.dtype()))
    call.fail(std::string("works on integers and bool, not ") + to_string(x.dtype()));
}

static Tensor inverted(const char *name, const Arg &x) {
  Call call(name, x, Rows::merged);
  requireBits(call, x.tensor);
  return call.emit<ir::NotOp>({x.tensor});
}

Tensor bitwise_not(Arg x) { return inverted("bitwise_not", x); }
Tensor operator~(Arg x) { return inverted("~", x); }

//===- two tensors ------------------------------------------------------------------------------------------------===//

/// Both operands broadcast to their common shape.
static std::pair<Tensor, Tensor> matched(Call &call, const Tensor &a, const Tensor &b) {
  Tensor left = call.beside(b, a), right = call.beside(a, b);
  SmallVector<int64_t> shape = call.commonShape(Call::shape(left), Call::shape(right));
  return {call.broadcast(left, shape), call.broadcast(right, shape)};
}

namespace {

/// Ops on two operands of one type: the conversion of each operand, and the op.
template <class Op, void (*require)(const Call &, const Tensor &)> struct Binary {
  Tensor operand(Call &call, const Tensor &x) const {
    require(call, x);
    return x;
  }
  Tensor operator()(Call &call, const Tensor &a, const Tensor &b) const { return call.emit<Op>({a, b}); }
};
template <class Op> using Arithmetic = Binary<Op, requireNumber>;
template <class Op> using Logical = Binary<Op, requireLogical>;
template <class Op> using Bitwise = Binary<Op, requireBits>;
template <class Op> using Shift = Binary<Op, requireInteger>;
struct TrueDivision {
  Tensor operand(Call &call, const Tensor &x) const { return is_float(x.dtype()) ? x : call.cast(x, call.graph.dtype); }
  Tensor operator()(Call &call, const Tensor &a, const Tensor &b) const { return call.emit<ir::DivOp>({a, b}); }
};
template <ir::Predicate predicate> struct Comparison {
  Tensor operand(Call &, const Tensor &x) const { return x; }
  Tensor operator()(Call &call, const Tensor &a, const Tensor &b) const {
    auto attribute = ir::PredicateAttr::get(&call.graph.context, predicate);
    return call.emit<ir::CompareOp>({a, b}, call.attribute("predicate", attribute));
  }
};

} // namespace

template <class Combine> static Tensor binary(const char *name, const Arg &a, const Arg &b, Combine combine) {
  Call call(name, a, b, Rows::merged);
  call.requireSameDType(a.tensor, b.tensor);
  auto [left, right] = matched(call, combine.operand(call, a.tensor), combine.operand(call, b.tensor));
  return combine(call, left, right);
}
template <class Combine> static Tensor binary(const char *name, const Arg &a, double b, Combine combine) {
  Call call(name, a, Rows::merged);
  Tensor left = combine.operand(call, a.tensor);
  return combine(call, left, call.literal(b, left));
}
template <class Combine> static Tensor binary(const char *name, double a, const Arg &b, Combine combine) {
  Call call(name, b, Rows::merged);
  Tensor right = combine.operand(call, b.tensor);
  return combine(call, call.literal(a, right), right);
}

#define SLUICE_DEFINE(function, text, ...)                                                                             \
  Tensor function(Arg a, Arg b) { return binary(text, a, b, __VA_ARGS__{}); }                                          \
  Tensor function(Arg a, double b) { return binary(text, a, b, __VA_ARGS__{}); }                                       \
  Tensor function(double a, Arg b) { return binary(text, a, b, __VA_ARGS__{}); }

#define SLUICE_BINARY(name, op) SLUICE_DEFINE(name, #name, Arithmetic<ir::op>)
SLUICE_BINARY_FUNCTIONS(SLUICE_BINARY)
SLUICE_DEFINE(div, "div", TrueDivision)
SLUICE_DEFINE(operator+, "+", Arithmetic<ir::AddOp>)
SLUICE_DEFINE(operator-, "-", Arithmetic<ir::SubOp>)
SLUICE_DEFINE(operator*, "*", Arithmetic<ir::MulOp>)
SLUICE_DEFINE(operator/, "/", TrueDivision)
SLUICE_DEFINE(operator%, "%", Arithmetic<ir::RemainderOp>)

#define SLUICE_BITWISE(name, op) SLUICE_DEFINE(name, #name, Bitwise<ir::op>)
SLUICE_BITWISE_FUNCTIONS(SLUICE_BITWISE)
SLUICE_DEFINE(operator&, "&", Bitwise<ir::AndOp>)
SLUICE_DEFINE(operator|, "|", Bitwise<ir::OrOp>)
SLUICE_DEFINE(operator^, "^", Bitwise<ir::XorOp>)

#define SLUICE_SHIFT(name, op) SLUICE_DEFINE(name, #name, Shift<ir::op>)
SLUICE_SHIFT_FUNCTIONS(SLUICE_SHIFT)
SLUICE_DEFINE(operator<<, "<<", Shift<ir::ShiftLeftOp>)
SLUICE_DEFINE(operator>>, ">>", Shift<ir::ShiftRightOp>)

#define SLUICE_COMPARISON(name, symbol)                                                                                \
  SLUICE_DEFINE(name, #name, Comparison<ir::Predicate::name>)                                                          \
  SLUICE_DEFINE(operator symbol, #symbol, Comparison<ir::Predicate::name>)
SLUICE_COMPARISONS(SLUICE_COMPARISON)

#define SLUICE_LOGICAL(name, op)                                                                                       \
  Tensor name(Arg a, Arg b) { return binary(#name, a, b, Logical<ir::op>{}); }
SLUICE_LOGICAL_FUNCTIONS(SLUICE_LOGICAL)

//===- assignments ------------------------------------------------------------------------------------------------===//

/// Assigns to x its combination with y, which has x's type.
template <class Y, class Combine>
static Tensor &assign(const char *name, const AssignedArg &x, const Y &y, Combine combine) {
  Arg before(x.tensor, x.where);
  Call call(name, before, Rows::merged);
  Tensor result = binary(name, before, y, combine);
  if (result.dtype() != x.tensor.dtype() || call.print(result) != call.print(x.tensor))
    call.fail("the result is " + std::string(to_string(result.dtype())) + " " + call.print(result) +
              ", which cannot be assigned to a tensor of " + to_string(x.tensor.dtype()) + "; declare a new tensor");
  return x.tensor = result;
}

#define SLUICE_ASSIGNMENT(symbol, ...)                                                                                 \
  Tensor &operator symbol(AssignedArg x, Arg y) { return assign(#symbol, x, y, __VA_ARGS__{}); }                       \
  Tensor &operator symbol(AssignedArg x, double y) { return assign(#symbol, x, y, __VA_ARGS__{}); }
SLUICE_ASSIGNMENT(+=, Arithmetic<ir::AddOp>)
SLUICE_ASSIGNMENT(-=, Arithmetic<ir::SubOp>)
SLUICE_ASSIGNMENT(*=, Arithmetic<ir::MulOp>)
SLUICE_ASSIGNMENT(/=, TrueDivision)

//===- where ------------------------------------------------------------------------------------------------------===//

static Tensor select(Call &call, const Tensor &condition, const Tensor &a, const Tensor &b) {
  requireBool(call, "the condition", condition);
  call.requireSameDType(a, b);
  SmallVector<Tensor> operands{condition, a, b};
  for (const Tensor &other : {condition, a, b})
    for (Tensor &operand : operands)
      operand = call.beside(other, operand);
  SmallVector<int64_t> shape;
  for (const Tensor &operand : operands)
    shape = call.commonShape(shape, Call::shape(operand));
  for (Tensor &operand : operands)
    operand = call.broadcast(operand, shape);
  return call.emit<ir::WhereOp>(operands);
}

Tensor where(Arg condition, Arg a, Arg b) {
  Call call("where", {condition.tensor, a.tensor, b.tensor}, condition.where, Rows::merged);
  return select(call, condition.tensor, a.tensor, b.tensor);
}
Tensor where(Arg condition, Arg a, double b) {
  Call call("where", condition, a, Rows::merged);
  return select(call, condition.tensor, a.tensor, call.literal(b, a.tensor));
}
Tensor where(Arg condition, double a, Arg b) {
  Call call("where", condition, b, Rows::merged);
  return select(call, condition.tensor, call.literal(a, b.tensor), b.tensor);
}

Tensor where(Arg condition, double a, double b) {
  Call call("where", condition, Rows::merged);
  requireBool(call, "the condition", condition.tensor);
  auto type = RankedTensorType::get(Call::shape(condition.tensor), call.graph.elementType(call.graph.dtype));
  return call.emit<ir::WhereOp>({condition.tensor, call.full(a, type), call.full(b, type)});
}

//===- constants --------------------------------------------------------------------------------------------------===//

static Tensor constantLike(const char *name, const Arg &x, double value) {
  Call call(name, x, Rows::merged);
  return call.literal(value, x.tensor);
}

Tensor full_like(Arg x, double value) { return constantLike("full_like", x, value); }
Tensor zeros_like(Arg x) { return constantLike("zeros_like", x, 0); }
Tensor ones_like(Arg x) { return constantLike("ones_like", x, 1); }

} // namespace sluice
