// Elementwise operators.
#include "frontend/onnx/import/Operators.h"
#include "frontend/onnx/operators/Casting.h"
#include "sluice/formulas.h"
#include "sluice/ops.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::onnx {

Tensor wrapped(const Tensor &x, ElementType type) {
  if (isFloat(type) || elementTypeOf(x.dtype()) == type)
    return x;
  auto [least, most] = limitsOf(type);
  return remainder(x - double(least), double(most) - double(least) + 1) + double(least);
}

Tensor castTo(const Tensor &x, ElementType from, ElementType to) {
  std::optional<DType> held = heldAs(to);
  if (!held)
    Node::fail("values of type " + nameOf(to) + " are not supported");
  if (!isFloat(from) || isFloat(to) || elementTypeOf(*held) == to)
    return wrapped(x.to(*held), to);
  auto [least, most] = limitsOf(to);
  return clip(x.to(*held), double(least), double(most));
}

//===- one operand ------------------------------------------------------------------------------------------------===//

/// Handlers of operators that are one function of one tensor.
#define UNARY(handler, function)                                                                                       \
  void handler(Node &node) { node.set(0, wrapped(function(node.tensor(0)), node.type(0)), node.type(0)); }
UNARY(absolute, sluice::abs)
UNARY(bitwiseNot, bitwise_not)
UNARY(ceiling, sluice::ceil)
UNARY(cosine, sluice::cos)
UNARY(errorFunction, sluice::erf)
UNARY(exponential, sluice::exp)
UNARY(floorOf, sluice::floor)
UNARY(hardSwish, hardswish)
UNARY(logarithm, sluice::log)
UNARY(negative, neg)
UNARY(rectified, relu)
UNARY(roundHalfToEven, sluice::round)
UNARY(sigmoidOf, sigmoid)
UNARY(sine, sluice::sin)
UNARY(softplusOf, softplus)
UNARY(squareRoot, sluice::sqrt)
UNARY(hyperbolicTangent, sluice::tanh)
UNARY(arcCosine, sluice::acos)
UNARY(arcSine, sluice::asin)
UNARY(arcTangent, sluice::atan)
UNARY(hyperbolicCosine, sluice::cosh)
UNARY(hyperbolicSine, sluice::sinh)
UNARY(inverseHyperbolicCosine, sluice::acosh)
UNARY(inverseHyperbolicSine, sluice::asinh)
UNARY(inverseHyperbolicTangent, sluice::atanh)
#undef UNARY

/// An inverse by true division, of floats.
void reciprocalOf(Node &node) { node.set(0, reciprocal(node.tensor(0))); }
void identityOf(Node &node) { node.set(0, node.inputValue(0)); }
bool identityKnown(Node &node) {
  identityOf(node);
  return true;
}
void notOf(Node &node) { node.set(0, logical_not(node.tensor(0))); }
void isNaN(Node &node) { node.set(0, isnan(node.tensor(0))); }
void signOf(Node &node) {
  Tensor x = node.tensor(0);
  Tensor y = is_float(x.dtype()) ? sign(x) : (x > 0.0).to(x.dtype()) - (x < 0.0).to(x.dtype());
  node.set(0, y, node.type(0));
}
void tangent(Node &node) {
  Tensor x = node.tensor(0);
  node.set(0, sluice::sin(x) / sluice::cos(x));
}

void isInfinite(Node &node) {
  Tensor x = node.tensor(0);
  bool negative = node.integer("detect_negative", 1) != 0, positive = node.integer("detect_positive", 1) != 0;
  Tensor y = isinf(x);
  if (!negative)
    y = y & (x > 0.0);
  if (!positive)
    y = y & (x < 0.0);
  node.set(0, y);
}

//===- activations ------------------------------------------------------------------------------------------------===//

void leakyRelu(Node &node) { node.set(0, leaky_relu(node.tensor(0), node.real("alpha", 0.01))); }
void eluOf(Node &node) { node.set(0, elu(node.tensor(0), node.real("alpha", 1.0))); }
void celu(Node &node) {
  double alpha = node.real("alpha", 1.0);
  Tensor x = node.tensor(0);
  node.set(0, maximum(x, 0.0) + minimum(alpha * expm1(x / alpha), 0.0));
}
void selu(Node &node) {
  double alpha = node.real("alpha", 1.67326319217681884765625), gamma = node.real("gamma", 1.05070102214813232421875);
  node.set(0, gamma * elu(node.tensor(0), alpha));
}
void thresholdedRelu(Node &node) {
  Tensor x = node.tensor(0);
  node.set(0, where(x > node.real("alpha", 1.0), x, 0.0));
}
void hardSigmoid(Node &node) {
  node.set(0, clip(node.real("alpha", 0.2f) * node.tensor(0) + node.real("beta", 0.5), 0.0, 1.0));
}
void softsign(Node &node) {
  Tensor x = node.tensor(0);
  node.set(0, x / (1.0 + sluice::abs(x)));
}
void mish(Node &node) {
  Tensor x = node.tensor(0);
  node.set(0, x * sluice::tanh(softplus(x)));
}
void swish(Node &node) {
  Tensor x = node.tensor(0);
  double alpha = node.real("alpha", 1.0);
  node.set(0, alpha == 1.0 ? silu(x) : x * sigmoid(alpha * x));
}
void geluOf(Node &node) {
  node.set(0, gelu(node.tensor(0), node.text("approximate", "none") == "tanh" ? Gelu::tanh : Gelu::none));
}
void shrink(Node &node) {
  Tensor x = node.tensor(0);
  double bias = node.real("bias", 0.0), limit = node.real("lambd", 0.5);
  node.set(0, where(x < -limit, x + bias, where(x > limit, x - bias, full_like(x, 0))), node.type(0));
}
/// The slope broadcasts to x; before version 7, a vector was a slope of each channel.
void preluOf(Node &node) {
  Tensor x = node.tensor(0), slope = node.weight(1);
  if (node.opset() < 7 && slope.dim() == 1 && x.dim() > 2) {
    std::vector<Dim> shape(static_cast<std::size_t>(x.dim() - 1), Dim(1));
    shape[0] = slope.size(0);
    slope = slope.reshape(Shape(shape));
  }
  node.set(0, where(x < 0.0, slope * x, x), node.type(0));
}

//===- two operands -----------------------------------------------------------------------------------------------===//

/// The second operand; before version 7, attributes aligned it with dimensions of the first.
static Tensor alignedSecond(Node &node) {
  Tensor b = node.tensor(1);
  if (node.opset() >= 7 || node.integer("broadcast", 0) == 0)
    return b;
  std::int64_t rank = node.rank(0);
  std::int64_t axis = node.hasAttribute("axis") ? Node::axisOf(node.integer("axis", 0), rank) : rank - b.dim();
  Shape before = b.shape();
  std::vector<Dim> shape(before.begin(), before.end());
  for (std::int64_t trailing = rank - axis - b.dim(); trailing > 0; --trailing)
    shape.emplace_back(1);
  return b.reshape(Shape(shape));
}

#define BINARY(handler, function)                                                                                      \
  void handler(Node &node) {                                                                                           \
    Tensor a = node.tensor(0), b = alignedSecond(node);                                                                \
    node.set(0, wrapped(function(a, b), node.type(0)), node.type(0));                                                  \
  }
BINARY(added, add)
BINARY(subtracted, sub)
BINARY(multiplied, mul)
BINARY(bitwiseAnd, bitwise_and)
BINARY(bitwiseOr, bitwise_or)
BINARY(bitwiseXor, bitwise_xor)
#undef BINARY

#define COMPARISON(handler, function)                                                                                  \
  void handler(Node &node) {                                                                                           \
    Tensor a = node.tensor(0), b = alignedSecond(node);                                                                \
    node.set(0, function(a, b));                                                                                       \
  }
COMPARISON(equal, eq)
COMPARISON(greater, gt)
COMPARISON(greaterOrEqual, ge)
COMPARISON(less, lt)
COMPARISON(lessOrEqual, le)
COMPARISON(andOf, logical_and)
COMPARISON(orOf, logical_or)
COMPARISON(xorOf, logical_xor)
#undef COMPARISON

/// a / b of integers, truncated toward zero: exact in f64 up to 2^53.
static Tensor dividedIntegers(const Tensor &a, const Tensor &b) {
  // (a - remainder) / b has the remainder with the sign of b (floor). Truncation adds 1 to a negative inexact quotient.
  Tensor floored = remainder(a, b);
  Tensor quotient = ((a - floored).to(f64) / b.to(f64)).to(a.dtype());
  Tensor isBelow = ((a < 0.0) ^ (b < 0.0)) & (floored != 0.0);
  return quotient + isBelow.to(a.dtype());
}

void divided(Node &node) {
  Tensor a = node.tensor(0), b = alignedSecond(node);
  node.set(0,
           is_float(a.dtype()) ? div(a, b)
           : a.dtype() == u8   ? (a.to(i32).to(f64) / b.to(i32).to(f64)).to(u8)
                               : dividedIntegers(a, b),
           node.type(0));
}

/// By default the sign of the divisor, as Python's %; with fmod the sign of the dividend, as C's.
void modulo(Node &node) {
  Tensor a = node.tensor(0), b = node.tensor(1);
  Tensor y = remainder(a, b);
  if (node.integer("fmod", 0) != 0)
    y = where((y != full_like(y, 0)) & ((a < full_like(a, 0)) ^ (y < full_like(y, 0))), y - b, y);
  node.set(0, y, node.type(0));
}

/// The base decides the type of the result. Powers of integers are exact up to 2^53.
void power(Node &node) {
  Tensor a = node.tensor(0), b = alignedSecond(node);
  if (const Known *exponent = node.known(1); exponent && exponent->count() == 1 && is_float(a.dtype()) &&
                                             exponent->real(0) == 2.0 && exponent->rank() <= node.rank(0))
    return node.set(0, square(a));
  DType dtype = is_float(a.dtype()) ? a.dtype() : f64;
  node.set(0, wrapped(pow(a.to(dtype), b.to(dtype)).to(a.dtype()), node.type(0)), node.type(0));
}

void bitShift(Node &node) {
  Tensor a = node.tensor(0), b = node.tensor(1);
  Tensor y = node.text("direction", "") == "LEFT" ? bitwise_left_shift(a, b) : bitwise_right_shift(a, b);
  node.set(0, wrapped(y, node.type(0)), node.type(0));
}

//===- several operands -------------------------------------------------------------------------------------------===//

template <class Combine> static Tensor combined(Node &node, Combine combine) {
  Tensor result = node.tensor(0);
  for (std::size_t i = 1; i < node.inputs(); ++i)
    result = combine(result, node.tensor(i));
  return result;
}
void summed(Node &node) {
  node.set(0, combined(node, [](Tensor a, Tensor b) { return a + b; }), node.type(0));
}
void greatest(Node &node) {
  node.set(0, combined(node, [](Tensor a, Tensor b) { return maximum(a, b); }), node.type(0));
}
void least(Node &node) {
  node.set(0, combined(node, [](Tensor a, Tensor b) { return minimum(a, b); }), node.type(0));
}
void averaged(Node &node) {
  node.set(0, combined(node, [](Tensor a, Tensor b) { return a + b; }) / double(node.inputs()), node.type(0));
}
void selected(Node &node) { node.set(0, where(node.tensor(0), node.tensor(1), node.tensor(2)), node.type(1)); }

//===- bounds and types -------------------------------------------------------------------------------------------===//

/// A bound of Clip: an attribute before version 11, then an optional input. A bound that is known is a number.
static Tensor bounded(Node &node, Tensor x, std::size_t input, const char *attribute, bool isLeast) {
  if (node.opset() < 11 && node.hasAttribute(attribute))
    return isLeast ? clip(x, node.real(attribute, 0)) : clip(x, std::nullopt, node.real(attribute, 0));
  if (node.opset() < 11 || !node.has(input))
    return x;
  if (const Known *bound = node.known(input); bound && is_float(x.dtype()) && !std::isnan(bound->real(0)))
    return isLeast ? clip(x, bound->real(0)) : clip(x, std::nullopt, bound->real(0));
  Tensor bound = node.tensor(input);
  return isLeast ? maximum(x, bound) : minimum(x, bound);
}
void clipped(Node &node) {
  Tensor x = bounded(node, node.tensor(0), 1, "min", true);
  node.set(0, bounded(node, x, 2, "max", false), node.type(0));
}

static bool evaluateCast(const Known &known, ElementType to, Node &node) {
  if (!sizeOf(to))
    return false;
  if (isFloat(known.type()))
    node.set(0, Known::ofReals(to, known.dims(), known.reals()));
  else
    node.set(0, Known::ofIntegers(to, known.dims(), known.integers()));
  return true;
}
void castOf(Node &node) {
  auto to = ElementType(node.integer("to", 0));
  node.set(0, castTo(node.tensor(0), node.type(0), to), to);
}
bool castKnown(Node &node) {
  auto to = ElementType(node.integer("to", 0));
  if (const Sizes *sizes = node.input(0).sizes()) {
    if (!isInteger(to))
      return false;
    node.set(0, *sizes);
    return true;
  }
  return evaluateCast(*node.known(0), to, node);
}
void castLike(Node &node) { node.set(0, castTo(node.tensor(0), node.type(0), node.type(1)), node.type(1)); }

/// Version 1 named the type.
void castByName(Node &node) {
  std::string to = node.text("to", "");
  std::ranges::transform(to, to.begin(), [](unsigned char c) { return std::tolower(c); });
  for (int number = 1; number <= int(ElementType::bf16); ++number)
    if (nameOf(ElementType(number)) == to)
      return node.set(0, castTo(node.tensor(0), node.type(0), ElementType(number)), ElementType(number));
  Node::fail("the type '" + to + "' is not supported");
}

} // namespace sluice::onnx
