// Elementwise functions: one tensor, two that broadcast, a number beside a tensor, where.
#include "Call.h"

using namespace mlir;

namespace sluice {

using detail::Call;

//===- one tensor -------------------------------------------------------------------------------------------------===//

template <class Op> static Tensor unary(const char *name, const Arg &x, ArrayRef<NamedAttribute> attributes = {}) {
  Call call(name, x);
  call.requireFloat(x.tensor);
  return call.emit<Op>({x.tensor}, attributes);
}

#define SLUICE_UNARY(name, op)                                                                                         \
  Tensor name(Arg x) { return unary<ir::op>(#name, x); }
SLUICE_UNARY_FUNCTIONS(SLUICE_UNARY)
#undef SLUICE_UNARY

Tensor identity(Arg x) { return unary<ir::IdentityOp>("identity", x); }
Tensor operator-(Arg x) { return unary<ir::NegOp>("-", x); }

Tensor leaky_relu(Arg x, double negative_slope) {
  Call call("leaky_relu", x);
  call.requireFloat(x.tensor);
  return call.emit<ir::LeakyReluOp>({x.tensor}, call.real("alpha", negative_slope));
}

Tensor elu(Arg x, double alpha) {
  Call call("elu", x);
  call.requireFloat(x.tensor);
  return call.emit<ir::EluOp>({x.tensor}, call.real("alpha", alpha));
}

Tensor gelu(Arg x, Gelu approximate) {
  Call call("gelu", x);
  call.requireFloat(x.tensor);
  SmallVector<NamedAttribute> attributes;
  if (approximate == Gelu::tanh)
    attributes.push_back(call.unit("tanh"));
  return call.emit<ir::GeluOp>({x.tensor}, attributes);
}

static Tensor clipAs(const char *name, const Arg &x, double min, double max) {
  Call call(name, x);
  call.requireFloat(x.tensor);
  if (!(min <= max))
    call.fail("the minimum " + std::to_string(min) + " is above the maximum " + std::to_string(max));
  return call.emit<ir::ClipOp>({x.tensor}, {call.real("min", min), call.real("max", max)});
}

Tensor clip(Arg x, double min, double max) { return clipAs("clip", x, min, max); }
Tensor relu6(Arg x) { return clipAs("relu6", x, 0.0, 6.0); }

Tensor cast(Arg x, DType dtype) { return Call("cast", x).cast(x.tensor, dtype); }
Tensor stop_gradient(Arg x) { return Call("stop_gradient", x).emit<ir::StopGradientOp>({x.tensor}); }

static void requireBool(const Call &call, const char *operand, const Tensor &x) {
  if (x.dtype() != DType::boolean)
    call.fail(std::string(operand) + " is " + to_string(x.dtype()) + ", not bool");
}

Tensor logical_not(Arg x) {
  Call call("logical_not", x);
  requireBool(call, "the operand", x.tensor);
  return call.emit<ir::NotOp>({x.tensor});
}

//===- two tensors ------------------------------------------------------------------------------------------------===//

/// Both operands in their common shape.
static std::pair<Tensor, Tensor> matched(Call &call, const Tensor &a, const Tensor &b) {
  call.requireSameDType(a, b);
  SmallVector<int64_t> shape = call.commonShape(Call::shape(a), Call::shape(b));
  return {call.broadcast(a, shape), call.broadcast(b, shape)};
}

namespace {

/// Builds one op on operands of one type.
template <class Op> struct Arithmetic {
  Tensor operator()(Call &call, const Tensor &a, const Tensor &b) const {
    if (a.dtype() == DType::boolean)
      call.fail("works on numbers, not bool; convert with .to(f32)");
    return call.emit<Op>({a, b});
  }
};
template <class Op> struct Logical {
  Tensor operator()(Call &call, const Tensor &a, const Tensor &b) const {
    requireBool(call, "an operand", a);
    return call.emit<Op>({a, b});
  }
};
template <ir::Predicate predicate> struct Comparison {
  Tensor operator()(Call &call, const Tensor &a, const Tensor &b) const {
    auto attribute = ir::PredicateAttr::get(&call.graph.context, predicate);
    return call.emit<ir::CompareOp>({a, b}, call.attribute("predicate", attribute));
  }
};

} // namespace

template <class Combine> static Tensor binary(const char *name, const Arg &a, const Arg &b, Combine combine) {
  Call call(name, a, b);
  auto [left, right] = matched(call, a.tensor, b.tensor);
  return combine(call, left, right);
}
template <class Combine> static Tensor binary(const char *name, const Arg &a, double b, Combine combine) {
  Call call(name, a);
  return combine(call, a.tensor, call.literal(b, a.tensor));
}
template <class Combine> static Tensor binary(const char *name, double a, const Arg &b, Combine combine) {
  Call call(name, b);
  return combine(call, call.literal(a, b.tensor), b.tensor);
}

#define SLUICE_DEFINE(function, text, ...)                                                                             \
  Tensor function(Arg a, Arg b) { return binary(text, a, b, __VA_ARGS__{}); }                                          \
  Tensor function(Arg a, double b) { return binary(text, a, b, __VA_ARGS__{}); }                                       \
  Tensor function(double a, Arg b) { return binary(text, a, b, __VA_ARGS__{}); }

#define SLUICE_BINARY(name, op) SLUICE_DEFINE(name, #name, Arithmetic<ir::op>)
SLUICE_BINARY_FUNCTIONS(SLUICE_BINARY)
SLUICE_DEFINE(operator+, "+", Arithmetic<ir::AddOp>)
SLUICE_DEFINE(operator-, "-", Arithmetic<ir::SubOp>)
SLUICE_DEFINE(operator*, "*", Arithmetic<ir::MulOp>)
SLUICE_DEFINE(operator/, "/", Arithmetic<ir::DivOp>)

#define SLUICE_COMPARISON(name) SLUICE_DEFINE(name, #name, Comparison<ir::Predicate::name>)
SLUICE_COMPARISONS(SLUICE_COMPARISON)

#define SLUICE_LOGICAL(name, op)                                                                                       \
  Tensor name(Arg a, Arg b) { return binary(#name, a, b, Logical<ir::op>{}); }
SLUICE_LOGICAL_FUNCTIONS(SLUICE_LOGICAL)

//===- where ------------------------------------------------------------------------------------------------------===//

static Tensor select(Call &call, const Tensor &condition, const Tensor &a, const Tensor &b) {
  requireBool(call, "the condition", condition);
  call.requireSameDType(a, b);
  SmallVector<int64_t> shape =
      call.commonShape(call.commonShape(Call::shape(a), Call::shape(b)), Call::shape(condition));
  return call.emit<ir::WhereOp>({call.broadcast(condition, shape), call.broadcast(a, shape), call.broadcast(b, shape)});
}

Tensor where(Arg condition, Arg a, Arg b) {
  Call call("where", {condition.tensor, a.tensor, b.tensor}, condition.where);
  return select(call, condition.tensor, a.tensor, b.tensor);
}
Tensor where(Arg condition, Arg a, double b) {
  Call call("where", condition, a);
  return select(call, condition.tensor, a.tensor, call.literal(b, a.tensor));
}
Tensor where(Arg condition, double a, Arg b) {
  Call call("where", condition, b);
  return select(call, condition.tensor, call.literal(a, b.tensor), b.tensor);
}

} // namespace sluice
