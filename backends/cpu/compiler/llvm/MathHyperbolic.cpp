// Formulas in double precision, which leave one rounding to f32.
#include "backends/cpu/compiler/llvm/MathHyperbolic.h"

#include "backends/cpu/compiler/llvm/MathDoubles.h"

#include <cmath>
#include <numbers>

namespace sluice::cpu {

using namespace mlir;

/// Below this, asinh and atanh are x in f32: they differ by less than x^3 / 3.
static constexpr double kLinear = 0x1p-12;

/// A function of f32 that is computed in f64.
static Value inDoubles(const Formula &f, Value x, llvm::function_ref<Value(const Formula &, Value)> function) {
  Formula wide{f.b, f.loc, f.like(f.b.getF64Type())};
  Value exact = f.b.create<arith::ExtFOp>(f.loc, wide.type, x);
  return f.b.create<arith::TruncFOp>(f.loc, f.type, function(wide, exact));
}

static Value squareRoot(const Formula &f, Value x) { return f.b.create<math::SqrtOp>(f.loc, x); }

/// The logarithm of a number from 1 to infinity. NaN stays NaN.
static Value logarithm(const Formula &f, Value x) {
  Value isInfinite = f.compare(arith::CmpFPredicate::UGE, x, f.constant(INFINITY)); // or NaN
  return f.select(isInfinite, x, f.mul(log2(f, x), f.constant(std::numbers::ln2)));
}

//===- inverse trigonometric functions ----------------------------------------------------------------------------===//

/// The angle of the point (x, y), with x and y from 0 to infinity, in (0, pi / 2). Angles above 3/8 pi and above pi/8 are
/// pi/2 and pi/4 plus an angle of at most pi/8, whose series is short.
static Value angle(const Formula &f, Value x, Value y) {
  constexpr double kHigh = 1 + std::numbers::sqrt2, kLow = std::numbers::sqrt2 - 1;
  auto isAbove = [&](double slope) { return f.compare(arith::CmpFPredicate::OGT, y, f.mul(x, f.constant(slope))); };
  Value isHigh = isAbove(kHigh), isMiddle = isAbove(kLow), negative = f.b.create<arith::NegFOp>(f.loc, x);
  auto choose = [&](Value high, Value middle, Value low) {
    return f.select(isHigh, high, f.select(isMiddle, middle, low));
  };
  Value tangent = f.div(choose(negative, f.sub(y, x), y), choose(y, f.add(x, y), x));
  SmallVector<double> series;
  for (int n = 23; n >= 1; n -= 2)
    series.push_back((n % 4 == 1 ? 1.0 : -1.0) / n);
  Value rest = f.mul(f.polynomial(f.mul(tangent, tangent), series), tangent);
  return f.add(choose(f.constant(std::numbers::pi / 2), f.constant(std::numbers::pi / 4), f.constant(0)), rest);
}

/// sqrt(1 - x^2), without cancellation near 1.
static Value otherSide(const Formula &f, Value x) {
  return squareRoot(f, f.mul(f.sub(f.constant(1), x), f.add(f.constant(1), x)));
}

Value asin(const Formula &f, Value x) {
  return inDoubles(f, x, [](const Formula &f, Value x) {
    Value size = f.abs(x);
    return f.withSign(angle(f, otherSide(f, size), size), x);
  });
}

Value acos(const Formula &f, Value x) {
  return inDoubles(f, x, [](const Formula &f, Value x) {
    Value size = f.abs(x), acute = angle(f, size, otherSide(f, size));
    return f.select(f.less(x, 0), f.sub(f.constant(std::numbers::pi), acute), acute);
  });
}

Value atan(const Formula &f, Value x) {
  return inDoubles(f, x, [](const Formula &f, Value x) { return f.withSign(angle(f, f.constant(1), f.abs(x)), x); });
}

//===- hyperbolic functions ---------------------------------------------------------------------------------------===//

/// e^|x|, or e^100, which is infinite in f32, beyond it.
static Value exponential(const Formula &f, Value x) {
  return exp2(f, f.mul(f.clamp(f.abs(x), 100), f.constant(std::numbers::log2e)));
}

// The series near 0, where the difference of the exponentials cancels.
Value sinh(const Formula &f, Value x) {
  return inDoubles(f, x, [](const Formula &f, Value x) {
    Value power = exponential(f, x), half = f.constant(0.5);
    Value large = f.mul(half, f.sub(power, f.div(f.constant(1), power)));
    Value small = f.mul(f.polynomial(f.mul(x, x), {1.0 / 362880, 1.0 / 5040, 1.0 / 120, 1.0 / 6, 1}), x);
    return f.select(f.less(f.abs(x), 0.5), small, f.withSign(large, x));
  });
}

Value cosh(const Formula &f, Value x) {
  return inDoubles(f, x, [](const Formula &f, Value x) {
    Value power = exponential(f, x);
    return f.mul(f.constant(0.5), f.add(power, f.div(f.constant(1), power)));
  });
}

Value asinh(const Formula &f, Value x) {
  return inDoubles(f, x, [](const Formula &f, Value x) {
    Value size = f.abs(x);
    Value y = logarithm(f, f.add(size, squareRoot(f, f.fma(size, size, 1))));
    return f.select(f.less(size, kLinear), x, f.withSign(y, x));
  });
}

Value acosh(const Formula &f, Value x) {
  return inDoubles(f, x, [](const Formula &f, Value x) {
    Value one = f.constant(1), root = squareRoot(f, f.mul(f.sub(x, one), f.add(x, one)));
    Value isOutside = f.compare(arith::CmpFPredicate::ULT, x, one);
    return f.select(isOutside, f.constant(NAN), logarithm(f, f.add(x, root)));
  });
}

Value atanh(const Formula &f, Value x) {
  return inDoubles(f, x, [](const Formula &f, Value x) {
    Value one = f.constant(1), size = f.abs(x);
    Value y = f.mul(f.constant(0.5), logarithm(f, f.div(f.add(one, size), f.sub(one, size))));
    Value isOutside = f.compare(arith::CmpFPredicate::UGT, size, one);
    y = f.select(isOutside, f.constant(NAN), y);
    return f.select(f.less(size, kLinear), x, f.withSign(y, x));
  });
}

} // namespace sluice::cpu
