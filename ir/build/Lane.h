// Scalars or vectors in an op's body, with operators: `1.0 / (1.0 + exp(-a))` builds arith and math ops. Floats are f32
// and f64; narrower storage types are computed in f32. i8 lanes are unsigned and i1 lanes boolean; i32 and i64 are
// signed. A scalar combined with a vector is broadcast to its lanes.
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace sluice::ir {

class Lane {
public:
  Lane(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value) : builder(&builder), loc(loc), value(value) {}
  operator mlir::Value() const { return value; }

  /// A constant of this lane's type.
  Lane like(double constant) const;
  mlir::Type elementType() const;
  bool isFloat() const;

  mlir::OpBuilder *builder;
  mlir::Location loc;
  mlir::Value value;
};

Lane operator-(Lane a);
Lane operator!(Lane a);
Lane operator~(Lane a);
Lane operator+(Lane a, Lane b);
Lane operator-(Lane a, Lane b);
Lane operator*(Lane a, Lane b);
Lane operator/(Lane a, Lane b); // integers: towards zero; division by zero gives zero
Lane operator&(Lane a, Lane b);
Lane operator|(Lane a, Lane b);
Lane operator^(Lane a, Lane b);
Lane operator>(Lane a, Lane b); // comparisons give i1 lanes; ordered, except !=
Lane operator>=(Lane a, Lane b);
Lane operator<(Lane a, Lane b);
Lane operator<=(Lane a, Lane b);
Lane operator==(Lane a, Lane b);
Lane operator!=(Lane a, Lane b);
Lane max(Lane a, Lane b); // NaN if either is
Lane min(Lane a, Lane b);
Lane pow(Lane a, Lane b);
Lane fmod(Lane a, Lane b); // floats: exact, with the sign of a
/// a - floor(a / b) * b, computed exactly and rounded once, with the sign of b. For integers by 0, a.
Lane remainder(Lane a, Lane b);
/// 1 / (1 + e^-a). Neither the exponential nor the quotient overflows.
Lane sigmoid(Lane a);
Lane where(Lane condition, Lane a, Lane b);
Lane abs(Lane a);
Lane exp(Lane a);
Lane expm1(Lane a);
Lane log(Lane a);
Lane log1p(Lane a);
Lane sqrt(Lane a);
/// a * b + c of floats, rounded once.
Lane multiplyAdd(Lane a, Lane b, Lane c);
Lane sin(Lane a);
Lane cos(Lane a);
Lane asin(Lane a);
Lane acos(Lane a);
Lane atan(Lane a);
Lane sinh(Lane a);
Lane cosh(Lane a);
Lane asinh(Lane a);
Lane acosh(Lane a);
Lane atanh(Lane a);
Lane tanh(Lane a);
Lane erf(Lane a);
Lane floor(Lane a);
Lane ceil(Lane a);
Lane roundeven(Lane a);
Lane shiftLeft(Lane a, int64_t bits);
Lane shiftRightUnsigned(Lane a, int64_t bits);
/// Shift counts that are negative or at least the width shift out all bits: the result is 0, or -1 for a right shift of
/// a negative integer.
Lane shiftLeft(Lane a, Lane bits);
Lane shiftRight(Lane a, Lane bits);

// A double combined with a lane is a constant of the lane's type.
#define SLUICE_MIXED(op)                                                                                               \
  inline Lane operator op(Lane a, double b) { return a op a.like(b); }                                                 \
  inline Lane operator op(double a, Lane b) { return b.like(a) op b; }
SLUICE_MIXED(+)
SLUICE_MIXED(-)
SLUICE_MIXED(*)
SLUICE_MIXED(/)
SLUICE_MIXED(>)
SLUICE_MIXED(>=)
SLUICE_MIXED(<)
SLUICE_MIXED(<=)
SLUICE_MIXED(==)
SLUICE_MIXED(!=)
#undef SLUICE_MIXED
inline Lane max(Lane a, double b) { return max(a, a.like(b)); }
inline Lane min(Lane a, double b) { return min(a, a.like(b)); }
inline Lane where(Lane condition, Lane a, double b) { return where(condition, a, a.like(b)); }
inline Lane where(Lane condition, double a, Lane b) { return where(condition, b.like(a), b); }

/// The lane type of a tensor's element type: ui8 is i8, f16 and bf16 are f32. The caller that stores a formula's result
/// rounds it.
mlir::Type getLaneElement(mlir::Type element);

/// Converts between element types by the rules of sluice.cast.
Lane castTo(Lane a, mlir::Type element, bool fromUnsigned, bool toUnsigned);

} // namespace sluice::ir
