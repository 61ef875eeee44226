#include "ir/build/Lane.h"
#include "ir/Types.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include <cmath>

using namespace mlir;

namespace sluice::ir {

Type getLaneElement(Type element) {
  if (element.isInteger())
    return IntegerType::get(element.getContext(), element.getIntOrFloatBitWidth());
  return isHalf(element) ? getAccumulator(element) : element;
}

/// `shape` with another element type: a vector where `shape` is one.
static Type likeType(Type shape, Type element) {
  auto vector = dyn_cast<VectorType>(shape);
  return vector ? Type(vector.clone(element)) : element;
}

/// i8 is ui8 and i1 is a boolean; i32 and i64 are signed.
static bool isSigned(Lane a) { return a.elementType().getIntOrFloatBitWidth() >= 32; }

static Lane with(Lane a, Value value) { return Lane(*a.builder, a.loc, value); }

template <typename Op, typename... Args> static Lane create(Lane a, Args... args) {
  return with(a, a.builder->create<Op>(a.loc, args...));
}

/// A scalar combined with a vector is broadcast to its lanes.
static Lane spread(Lane a, Lane like) {
  auto vector = dyn_cast<VectorType>(like.value.getType());
  if (!vector || isa<VectorType>(a.value.getType()))
    return a;
  return create<vector::BroadcastOp>(a, vector.clone(a.elementType()), a.value);
}

template <typename Op> static Lane unary(Lane a) { return create<Op>(a, a.value); }
template <typename Op> static Lane binary(Lane a, Lane b) {
  return create<Op>(a, spread(a, b).value, spread(b, a).value);
}
template <typename OnFloats, typename OnIntegers> static Lane binary(Lane a, Lane b) {
  return a.isFloat() ? binary<OnFloats>(a, b) : binary<OnIntegers>(a, b);
}

static Lane compare(Lane a, Lane b, arith::CmpFPredicate onFloats, arith::CmpIPredicate onSigned,
                    arith::CmpIPredicate onUnsigned) {
  Value left = spread(a, b), right = spread(b, a);
  if (a.isFloat())
    return create<arith::CmpFOp>(a, onFloats, left, right);
  return create<arith::CmpIOp>(a, isSigned(a) ? onSigned : onUnsigned, left, right);
}

Lane Lane::like(double constant) const {
  Type element = elementType();
  TypedAttr number;
  if (isFloat())
    number = FloatAttr::get(element, constant);
  else if (element.isInteger(1))
    number = IntegerAttr::get(element, constant != 0);
  else
    number = IntegerAttr::get(element, APInt(element.getIntOrFloatBitWidth(), uint64_t(int64_t(constant)), true));
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    number = DenseElementsAttr::get(vector, Attribute(number));
  return Lane(*builder, loc, builder->create<arith::ConstantOp>(loc, number));
}

Type Lane::elementType() const { return getElementTypeOrSelf(value.getType()); }
bool Lane::isFloat() const { return isa<FloatType>(elementType()); }

Lane operator-(Lane a) { return a.isFloat() ? unary<arith::NegFOp>(a) : a.like(0) - a; }
Lane operator!(Lane a) { return a ^ a.like(1); }
Lane operator~(Lane a) { return a ^ a.like(-1); }
Lane operator+(Lane a, Lane b) { return binary<arith::AddFOp, arith::AddIOp>(a, b); }
Lane operator-(Lane a, Lane b) { return binary<arith::SubFOp, arith::SubIOp>(a, b); }
Lane operator*(Lane a, Lane b) { return binary<arith::MulFOp, arith::MulIOp>(a, b); }
Lane operator&(Lane a, Lane b) { return binary<arith::AndIOp>(a, b); }
Lane operator|(Lane a, Lane b) { return binary<arith::OrIOp>(a, b); }
Lane operator^(Lane a, Lane b) { return binary<arith::XOrIOp>(a, b); }

// Division by 0 and of the least integer by -1 would trap, so neither reaches the instruction.
static Lane divideSigned(Lane a, Lane b) {
  Lane byZero = b == 0.0, byMinusOne = b == -1.0;
  Lane quotient = binary<arith::DivSIOp>(a, where(byZero | byMinusOne, 1.0, b));
  return where(byZero, 0.0, where(byMinusOne, -a, quotient));
}

static Lane divideUnsigned(Lane a, Lane b) {
  Lane byZero = b == 0.0;
  return where(byZero, 0.0, binary<arith::DivUIOp>(a, where(byZero, 1.0, b)));
}

Lane operator/(Lane a, Lane b) {
  if (a.isFloat())
    return binary<arith::DivFOp>(a, b);
  return isSigned(a) ? divideSigned(a, b) : divideUnsigned(a, b);
}

Lane operator>(Lane a, Lane b) {
  return compare(a, b, arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt, arith::CmpIPredicate::ugt);
}
Lane operator>=(Lane a, Lane b) {
  return compare(a, b, arith::CmpFPredicate::OGE, arith::CmpIPredicate::sge, arith::CmpIPredicate::uge);
}
Lane operator<(Lane a, Lane b) {
  return compare(a, b, arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt, arith::CmpIPredicate::ult);
}
Lane operator<=(Lane a, Lane b) {
  return compare(a, b, arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle, arith::CmpIPredicate::ule);
}
Lane operator==(Lane a, Lane b) {
  return compare(a, b, arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, arith::CmpIPredicate::eq);
}
Lane operator!=(Lane a, Lane b) {
  return compare(a, b, arith::CmpFPredicate::UNE, arith::CmpIPredicate::ne, arith::CmpIPredicate::ne);
}

Lane max(Lane a, Lane b) {
  if (a.isFloat())
    return binary<arith::MaximumFOp>(a, b);
  return isSigned(a) ? binary<arith::MaxSIOp>(a, b) : binary<arith::MaxUIOp>(a, b);
}

Lane min(Lane a, Lane b) {
  if (a.isFloat())
    return binary<arith::MinimumFOp>(a, b);
  return isSigned(a) ? binary<arith::MinSIOp>(a, b) : binary<arith::MinUIOp>(a, b);
}

Lane pow(Lane a, Lane b) { return binary<math::PowFOp>(a, b); }
Lane multiplyAdd(Lane a, Lane b, Lane c) { return create<math::FmaOp>(a, a.value, b.value, c.value); }
Lane fmod(Lane a, Lane b) { return binary<arith::RemFOp>(a, b); }

Lane remainder(Lane a, Lane b) {
  Lane rest = a.isFloat() ? fmod(a, b) : a - a / b * b;
  Lane hasOtherSign = where(b < 0.0, rest > 0.0, rest < 0.0);
  return where(hasOtherSign, rest + b, rest);
}

// e^-|a| is in [0, 1]. `lost` is the rounding error of 1 + e^-|a|; without it, the quotient would be off by 2.5 ulp.
Lane sigmoid(Lane a) {
  Lane power = exp(-abs(a)), sum = power + 1.0, lost = power - (sum - 1.0);
  Lane quotient = where(a < 0.0, power, 1.0) / sum;
  return quotient - quotient * lost;
}

Lane where(Lane condition, Lane a, Lane b) {
  Lane widest = isa<VectorType>(condition.value.getType()) ? condition : isa<VectorType>(a.value.getType()) ? a : b;
  return create<arith::SelectOp>(a, spread(condition, widest).value, spread(a, widest).value, spread(b, widest).value);
}

Lane abs(Lane a) {
  if (a.isFloat())
    return unary<math::AbsFOp>(a);
  return isSigned(a) ? unary<math::AbsIOp>(a) : a;
}
Lane exp(Lane a) { return unary<math::ExpOp>(a); }
Lane expm1(Lane a) { return unary<math::ExpM1Op>(a); }
Lane log(Lane a) { return unary<math::LogOp>(a); }
Lane log1p(Lane a) { return unary<math::Log1pOp>(a); }
Lane sqrt(Lane a) { return unary<math::SqrtOp>(a); }
Lane sin(Lane a) { return unary<math::SinOp>(a); }
Lane cos(Lane a) { return unary<math::CosOp>(a); }
Lane asin(Lane a) { return unary<math::AsinOp>(a); }
Lane acos(Lane a) { return unary<math::AcosOp>(a); }
Lane atan(Lane a) { return unary<math::AtanOp>(a); }
Lane sinh(Lane a) { return unary<math::SinhOp>(a); }
Lane cosh(Lane a) { return unary<math::CoshOp>(a); }
Lane asinh(Lane a) { return unary<math::AsinhOp>(a); }
Lane acosh(Lane a) { return unary<math::AcoshOp>(a); }
Lane atanh(Lane a) { return unary<math::AtanhOp>(a); }
Lane tanh(Lane a) { return unary<math::TanhOp>(a); }
Lane erf(Lane a) { return unary<math::ErfOp>(a); }
Lane floor(Lane a) { return unary<math::FloorOp>(a); }
Lane ceil(Lane a) { return unary<math::CeilOp>(a); }
Lane roundeven(Lane a) { return unary<math::RoundEvenOp>(a); }

Lane shiftLeft(Lane a, int64_t bits) { return binary<arith::ShLIOp>(a, a.like(double(bits))); }
Lane shiftRightUnsigned(Lane a, int64_t bits) { return binary<arith::ShRUIOp>(a, a.like(double(bits))); }

// Shift instructions are undefined for counts of at least the width.
static Lane isBelowWidth(Lane bits) {
  return (bits >= 0.0) & (bits < double(bits.elementType().getIntOrFloatBitWidth()));
}

Lane shiftLeft(Lane a, Lane bits) {
  Lane inRange = isBelowWidth(bits);
  return where(inRange, binary<arith::ShLIOp>(a, where(inRange, bits, 0.0)), 0.0);
}

Lane shiftRight(Lane a, Lane bits) {
  Lane inRange = isBelowWidth(bits);
  if (isSigned(a)) // the last bit is the sign
    return binary<arith::ShRSIOp>(a, where(inRange, bits, double(a.elementType().getIntOrFloatBitWidth() - 1)));
  return where(inRange, binary<arith::ShRUIOp>(a, where(inRange, bits, 0.0)), 0.0);
}

static Lane castFloats(Lane a, Type type) {
  unsigned from = a.elementType().getIntOrFloatBitWidth(), to = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  if (from == to)
    return a;
  return from < to ? create<arith::ExtFOp>(a, type, a.value) : create<arith::TruncFOp>(a, type, a.value);
}

static Lane castIntegers(Lane a, Type type, bool fromUnsigned) {
  unsigned from = a.elementType().getIntOrFloatBitWidth(), to = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  if (from == to)
    return a;
  if (from > to)
    return create<arith::TruncIOp>(a, type, a.value);
  return fromUnsigned ? create<arith::ExtUIOp>(a, type, a.value) : create<arith::ExtSIOp>(a, type, a.value);
}

// The instruction is undefined outside the integer's range, so those lanes convert 0 and are replaced afterwards. The
// bound above the range, a power of two, is exact in every float; the greatest integer often is not. NaN fails both
// comparisons.
static Lane saturate(Lane a, Type type, bool toUnsigned) {
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  double least = toUnsigned ? 0.0 : -std::ldexp(1.0, int(width) - 1),
         bound = std::ldexp(1.0, int(toUnsigned ? width : width - 1));
  Lane raised = max(a, least);
  Lane inside = where(raised < bound, raised, 0.0);
  Lane converted =
      toUnsigned ? create<arith::FPToUIOp>(a, type, inside.value) : create<arith::FPToSIOp>(a, type, inside.value);
  APInt greatest = toUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
  TypedAttr limit = IntegerAttr::get(getElementTypeOrSelf(type), greatest);
  if (auto vector = dyn_cast<VectorType>(type))
    limit = DenseElementsAttr::get(vector, Attribute(limit));
  return where(a >= bound, create<arith::ConstantOp>(a, limit), converted);
}

Lane castTo(Lane a, Type element, bool fromUnsigned, bool toUnsigned) {
  fromUnsigned |= a.elementType().isInteger(1);
  element = getLaneElement(element);
  Type type = likeType(a.value.getType(), element);
  if (element.isInteger(1))
    return a.elementType() == element ? a : a != 0.0;
  if (a.isFloat())
    return isa<FloatType>(element) ? castFloats(a, type) : saturate(a, type, toUnsigned);
  if (isa<FloatType>(element))
    return fromUnsigned ? create<arith::UIToFPOp>(a, type, a.value) : create<arith::SIToFPOp>(a, type, a.value);
  return castIntegers(a, type, fromUnsigned);
}

} // namespace sluice::ir
