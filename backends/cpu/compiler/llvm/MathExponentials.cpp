// Both polynomials are from Cephes. MLIR's expansions are not accurate enough. They flush e^x below 2^-126 to 0 and
// have errors of up to 2^-16 near the overflow limit. They return log(2^-126) for subnormal numbers and fold a constant
// NaN to a number.
#include "backends/cpu/compiler/llvm/MathExponentials.h"

#include <cmath>

namespace sluice::cpu {

using namespace mlir;

// Adding this constant to a float below 2^22 leaves the nearest integer in the last bits of the sum.
static constexpr double kToNearest = 0x1.8p23;

namespace {
/// x = n log 2 + r, with |r| at most log(2) / 2.
struct ReducedExponent {
  ReducedExponent(const Formula &f, Value x) {
    n = f.floor(f.fma(x, f.constant(1.44269504088896341), 0.5));
    Value r = f.fma(f.constant(2.12194440e-4), n, f.fma(f.constant(-0.693359375), n, x));
    Value inner = f.polynomial(
        r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
    power = f.fma(inner, f.mul(r, r), r);
  }
  Value n;
  Value power; // e^r - 1
};
} // namespace

/// x, or `beyond` if x is below the bound; NaN stays NaN. If `beyond` is the bound, this is one instruction.
static Value atLeast(const Formula &f, Value x, double bound, double beyond) {
  return f.select(f.compare(arith::CmpFPredicate::UGE, x, f.constant(bound)), x, f.constant(beyond));
}

// 2^n is the product of two powers of two with exponents of about n / 2. Neither overflows or is subnormal, so that
// only the last product rounds. Below -104, all results are 0. The argument is replaced with -176 there, for which both
// powers are 0. Small nonzero factors would take the processor's slow path for subnormal results.
Value exp(const Formula &f, Value x) {
  ReducedExponent reduced(f, f.atMost(atLeast(f, x, -104, -176), 89));
  FloatBits bits{f};
  Value biased = bits.of(f.add(reduced.n, f.constant(kToNearest + 2 * 127))), first = bits.half(biased);
  Value power = f.mul(f.add(f.constant(1), reduced.power), bits.asFloat(bits.toExponent(first)));
  return f.mul(power, bits.asFloat(bits.toExponent(bits.sub(biased, first))));
}

Value expOfNormal(const Formula &f, Value x) {
  ReducedExponent reduced(f, x);
  FloatBits bits{f};
  Value scale = bits.asFloat(bits.toExponent(bits.of(f.add(reduced.n, f.constant(kToNearest + 127)))));
  return f.mul(f.add(f.constant(1), reduced.power), scale);
}

// Computes half of 2^n (e^r - 1) + (2^n - 1) and doubles it, so that 2^n does not overflow.
Value expm1(const Formula &f, Value x) {
  ReducedExponent reduced(f, f.atMost(atLeast(f, x, -30, -30), 89));
  FloatBits bits{f};
  Value biased = bits.of(f.add(reduced.n, f.constant(kToNearest + 126)));
  Value halfScale = bits.asFloat(bits.toExponent(biased));
  Value half = f.fma(halfScale, reduced.power, f.sub(halfScale, f.constant(0.5)));
  return f.select(f.less(f.abs(x), 0x1p-25), x, f.add(half, half));
}

namespace {
/// Splits a positive, finite, normal x into 2^k m, with m in [sqrt(1/2), sqrt(2)).
struct SplitFloat {
  SplitFloat(const Formula &f, Value x) : bits{f} {
    Value root = bits.constant(0x3f3504f3);
    k = bits.fromExponent(bits.sub(bits.of(x), root));
    m = bits.asFloat(bits.sub(bits.of(x), bits.toExponent(k)));
  }
  FloatBits bits;
  Value k, m;
};
} // namespace

/// k log 2 + log(1 + r), for a small r.
static Value logOf(const Formula &f, Value k, Value r) {
  Value square = f.mul(r, r), cube = f.mul(square, r);
  Value high = f.polynomial(r, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1});
  Value middle = f.polynomial(r, {-1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1});
  Value low = f.polynomial(r, {2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  Value tail = f.mul(f.fma(f.fma(high, cube, middle), cube, low), cube);
  Value logarithm = f.add(r, f.fma(f.constant(-0.5), square, tail));
  return f.fma(k, f.constant(0.693147180559945), logarithm);
}

Value log(const Formula &f, Value x) {
  Value isSubnormal = f.less(x, 0x1p-126);
  SplitFloat split(f, f.select(isSubnormal, f.mul(x, f.constant(0x1p23)), x));
  Value k = f.sub(split.bits.toFloat(split.k), f.select(isSubnormal, f.constant(23), f.constant(0)));
  Value y = logOf(f, k, f.sub(split.m, f.constant(1)));
  y = f.select(f.is(x, INFINITY), x, y);
  y = f.select(f.compare(arith::CmpFPredicate::ULT, x, f.constant(0)), f.constant(NAN), y);
  return f.select(f.is(x, 0), f.constant(-INFINITY), y);
}

// Computes log(u) of u = 1 + x. The rounding error of this sum is added to the mantissa of u.
Value log1p(const Formula &f, Value x) {
  Value one = f.constant(1), u = f.add(x, one);
  Value lost = f.select(f.less(x, 1), f.sub(x, f.sub(u, one)), f.sub(one, f.sub(u, x)));
  SplitFloat split(f, u);
  const FloatBits &bits = split.bits;
  Value scale = bits.asFloat(bits.toExponent(bits.sub(bits.constant(127), split.k)));
  // The rounding error of large sums is negligible, and the scale of the largest sums is not finite.
  Value rounded = f.sub(split.m, one), r = f.select(f.less(u, 0x1p25), f.add(rounded, f.mul(lost, scale)), rounded);
  Value y = logOf(f, bits.toFloat(split.k), r);
  y = f.select(f.either(f.is(u, 1), f.is(u, INFINITY)), x, y);
  y = f.select(f.compare(arith::CmpFPredicate::ULT, u, f.constant(0)), f.constant(NAN), y);
  return f.select(f.is(u, 0), f.constant(-INFINITY), y);
}

} // namespace sluice::cpu
