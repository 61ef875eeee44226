#include "backends/cpu/compiler/MathFunctions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

namespace sluice::cpu {

using namespace mlir;

namespace {

// Arithmetic on values of one type, scalars or vectors.
struct Formula {
  OpBuilder &b;
  Location loc;
  Type type;

  Type like(Type element) const {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? Type(vector.clone(element)) : element;
  }
  Value constant(double value) const {
    TypedAttr number = FloatAttr::get(getElementTypeOrSelf(type), value);
    if (auto vector = dyn_cast<VectorType>(type))
      number = DenseElementsAttr::get(vector, Attribute(number));
    return b.create<arith::ConstantOp>(loc, number);
  }
  Value add(Value x, Value y) const { return b.create<arith::AddFOp>(loc, x, y); }
  Value sub(Value x, Value y) const { return b.create<arith::SubFOp>(loc, x, y); }
  Value mul(Value x, Value y) const { return b.create<arith::MulFOp>(loc, x, y); }
  Value div(Value x, Value y) const { return b.create<arith::DivFOp>(loc, x, y); }
  Value fma(Value x, Value y, Value z) const { return b.create<math::FmaOp>(loc, x, y, z); }
  Value fma(Value x, Value y, double z) const { return fma(x, y, constant(z)); }
  Value abs(Value x) const { return b.create<math::AbsFOp>(loc, x); }
  Value exp(Value x) const { return b.create<math::ExpOp>(loc, x); }
  Value withSign(Value x, Value sign) const { return b.create<math::CopySignOp>(loc, x, sign); }
  Value less(Value x, double y) const {
    return b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OLT, x, constant(y));
  }
  // x in [-bound, bound]; NaN stays.
  Value clamp(Value x, double bound) const {
    Value below = b.create<arith::MinimumFOp>(loc, x, constant(bound));
    return b.create<arith::MaximumFOp>(loc, below, constant(-bound));
  }
  Value select(Value condition, Value x, Value y) const { return b.create<arith::SelectOp>(loc, condition, x, y); }
  // c[0] x^(n-1) + ... + c[n-1]
  Value polynomial(Value x, ArrayRef<double> c) const {
    Value sum = constant(c[0]);
    for (double next : c.drop_front())
      sum = fma(sum, x, next);
    return sum;
  }
};

template <typename Op> struct Expansion : OpRewritePattern<Op> {
  using Build = Value (*)(const Formula &, Value);
  Expansion(MLIRContext *context, Build build) : OpRewritePattern<Op>(context, /*benefit=*/10), build(build) {}
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    rewriter.replaceOp(op, build(Formula{rewriter, op.getLoc(), op.getType()}, op.getOperand()));
    return success();
  }
  Build build;
};

} // namespace

// An odd polynomial near zero (Cephes); 1 - 2 / (e^2|x| + 1) elsewhere.
static Value tanh(const Formula &f, Value x) {
  Value square = f.mul(x, x), size = f.abs(x);
  Value inner = f.polynomial(
      square, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
  Value small = f.fma(f.mul(inner, square), x, x);
  Value large = f.sub(f.constant(1), f.div(f.constant(2), f.add(f.exp(f.add(size, size)), f.constant(1))));
  return f.withSign(f.select(f.less(size, 0.625), small, large), x);
}

// An odd polynomial near zero; 1 - e^p(|x|) elsewhere. Both by N. Juffa.
static Value erf(const Formula &f, Value x) {
  Value square = f.mul(x, x), size = f.abs(x);
  Value inner = f.polynomial(
      square, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
  Value small = f.fma(inner, x, x);
  // Beyond 4 the exponential has vanished; the polynomial would turn around further out.
  Value t = f.b.create<arith::MinimumFOp>(f.loc, size, f.constant(4));
  Value tSquare = f.mul(t, t);
  Value high = f.fma(f.constant(-1.72853470e-5), t, 3.83197126e-4);
  Value low = f.fma(f.constant(-3.88396438e-3), t, 2.42546219e-2);
  Value exponent = f.fma(high, tSquare, low);
  for (double c : {-1.06777877e-1, -6.34846687e-1, -1.28717512e-1})
    exponent = f.fma(exponent, t, c);
  exponent = f.fma(exponent, t, f.b.create<arith::NegFOp>(f.loc, t));
  Value large = f.withSign(f.sub(f.constant(1), f.exp(exponent)), x);
  return f.select(f.less(size, 0.927734375), small, large);
}

// x = k pi/2 + r in double precision, so that r keeps its relative accuracy; then the polynomials of Cephes on |r| <=
// pi/4, and the quadrant's choice and sign.
static Value sinOfQuadrant(const Formula &f, Value x, double shift) {
  Formula wide{f.b, f.loc, f.like(f.b.getF64Type())};
  Value exact = f.b.create<arith::ExtFOp>(f.loc, wide.type, x);
  Value k = f.b.create<math::RoundEvenOp>(f.loc, wide.mul(exact, wide.constant(0.63661977236758134)));
  Value rest = wide.fma(k, wide.constant(-1.5707963267948966), exact);
  rest = wide.fma(k, wide.constant(-6.123233995736766e-17), rest);
  Value r = f.b.create<arith::TruncFOp>(f.loc, f.type, rest);
  // k mod 4 in [0, 4), exact in floats.
  Value quadrant = wide.add(k, wide.constant(shift));
  quadrant = wide.sub(
      quadrant, wide.mul(f.b.create<math::FloorOp>(f.loc, wide.mul(quadrant, wide.constant(0.25))), wide.constant(4)));
  Value q = f.b.create<arith::TruncFOp>(f.loc, f.type, quadrant);

  Value square = f.mul(r, r);
  Value sine = f.fma(f.mul(f.polynomial(square, {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1}), square), r, r);
  Value cosine = f.polynomial(square, {2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2, -0.5, 1});
  Value isOdd =
      f.b.create<arith::OrIOp>(f.loc, f.b.create<arith::CmpFOp>(f.loc, arith::CmpFPredicate::OEQ, q, f.constant(1)),
                               f.b.create<arith::CmpFOp>(f.loc, arith::CmpFPredicate::OEQ, q, f.constant(3)));
  Value value = f.select(isOdd, cosine, sine);
  Value isNegative = f.b.create<arith::CmpFOp>(f.loc, arith::CmpFPredicate::OGE, q, f.constant(2));
  value = f.select(isNegative, f.b.create<arith::NegFOp>(f.loc, value), value);
  value = f.b.create<arith::MinimumFOp>(f.loc, value, f.constant(1));
  return f.b.create<arith::MaximumFOp>(f.loc, value, f.constant(-1));
}

static Value sin(const Formula &f, Value x) {
  // Signed zeros: r is x, but r + 0 k would lose the sign.
  Value value = sinOfQuadrant(f, x, 0);
  Value isZero = f.b.create<arith::CmpFOp>(f.loc, arith::CmpFPredicate::OEQ, x, f.constant(0));
  return f.select(isZero, x, value);
}

static Value cos(const Formula &f, Value x) { return sinOfQuadrant(f, x, 1); }

//===- pow --------------------------------------------------------------------------------------------------------===//

namespace {

/// Bits of doubles, as i64.
struct DoubleBits {
  const Formula &f;
  Type type = f.like(f.b.getI64Type());

  Value of(Value x) const { return f.b.create<arith::BitcastOp>(f.loc, type, x); }
  Value asDouble(Value bits) const { return f.b.create<arith::BitcastOp>(f.loc, f.type, bits); }
  Value constant(uint64_t value) const {
    TypedAttr number = f.b.getI64IntegerAttr(int64_t(value));
    if (auto vector = dyn_cast<VectorType>(type))
      number = DenseElementsAttr::get(vector, Attribute(number));
    return f.b.create<arith::ConstantOp>(f.loc, number);
  }
  Value add(Value x, Value y) const { return f.b.create<arith::AddIOp>(f.loc, x, y); }
  Value sub(Value x, Value y) const { return f.b.create<arith::SubIOp>(f.loc, x, y); }
  Value toExponent(Value x) const { return f.b.create<arith::ShLIOp>(f.loc, x, constant(52)); }
  Value fromExponent(Value x) const { return f.b.create<arith::ShRSIOp>(f.loc, x, constant(52)); }
};

} // namespace

// Added to a double of less than 2^51, it leaves the nearest whole number in the last bits.
static constexpr double kToInteger = 0x1.8p52;

// log2 of a positive, finite, normal double, to 2^-44 of itself: x = 2^k m with m in [sqrt(1/2), sqrt(2)), and log m =
// 2 atanh((m - 1) / (m + 1)), of which the series is short.
static Value log2(const Formula &f, Value x) {
  constexpr double kTwoOverLn2 = 2.8853900817779268;
  DoubleBits bits{f};
  Value k = bits.fromExponent(bits.sub(bits.of(x), bits.constant(0x3fe6a09e667f3bcd)));
  Value m = bits.asDouble(bits.sub(bits.of(x), bits.toExponent(k)));
  Value exponent = f.sub(bits.asDouble(bits.add(k, bits.of(f.constant(kToInteger)))), f.constant(kToInteger));
  Value s = f.div(f.sub(m, f.constant(1)), f.add(m, f.constant(1)));
  SmallVector<double> series;
  for (int n = 15; n >= 1; n -= 2)
    series.push_back(kTwoOverLn2 / n);
  return f.fma(f.polynomial(f.mul(s, s), series), s, exponent);
}

// 2^x for x in [-1000, 1000], to 2^-32 of itself.
static Value exp2(const Formula &f, Value x) {
  constexpr double kLn2 = 0.6931471805599453;
  DoubleBits bits{f};
  Value shifted = f.add(x, f.constant(kToInteger));
  Value rest = f.sub(x, f.sub(shifted, f.constant(kToInteger)));
  SmallVector<double> series;
  double coefficient = 1;
  for (int n = 0; n <= 8; ++n, coefficient *= kLn2 / n)
    series.insert(series.begin(), coefficient);
  Value scale = bits.asDouble(bits.add(bits.toExponent(bits.of(shifted)), bits.of(f.constant(1))));
  return f.mul(f.polynomial(rest, series), scale);
}

// |x|^y as 2^(y log2 |x|) in double precision, which leaves one rounding to f32; then C's special cases.
static Value powOfMagnitude(const Formula &f, Value x, Value y) {
  Formula wide{f.b, f.loc, f.like(f.b.getF64Type())};
  constexpr double kHuge = 0x1p200; // times any logarithm but 0 it is beyond all floats; times 0 it is 0
  auto widened = [&](Value value) -> Value { return f.b.create<arith::ExtFOp>(f.loc, wide.type, value); };
  auto is = [&](Value value, double number) {
    return f.b.create<arith::CmpFOp>(f.loc, arith::CmpFPredicate::OEQ, value, wide.constant(number));
  };
  Value size = widened(f.abs(x)), exponent = widened(y);
  Value logarithm = wide.select(is(size, 0), wide.constant(-INFINITY), log2(wide, size));
  logarithm = wide.select(is(size, INFINITY), wide.constant(INFINITY), logarithm);
  Value power = wide.clamp(wide.mul(wide.clamp(exponent, kHuge), logarithm), 200);
  return f.b.create<arith::TruncFOp>(f.loc, f.type, exp2(wide, power));
}

static Value pow(const Formula &f, Value x, Value y) {
  auto compare = [&](arith::CmpFPredicate predicate, Value a, Value b) -> Value {
    return f.b.create<arith::CmpFOp>(f.loc, predicate, a, b);
  };
  auto both = [&](Value a, Value b) -> Value { return f.b.create<arith::AndIOp>(f.loc, a, b); };
  auto floor = [&](Value value) -> Value { return f.b.create<math::FloorOp>(f.loc, value); };
  Value half = f.mul(y, f.constant(0.5)), nan = f.constant(NAN);
  Value isFraction = compare(arith::CmpFPredicate::ONE, floor(y), y);
  Value isOdd =
      both(compare(arith::CmpFPredicate::OEQ, floor(y), y), compare(arith::CmpFPredicate::ONE, floor(half), half));
  Value isNegative = f.less(x, 0);
  Value isFinite = f.less(f.abs(x), INFINITY);

  Value result = powOfMagnitude(f, x, y);
  result = f.select(isOdd, f.withSign(result, x), result);
  result = f.select(both(both(isNegative, isFinite), isFraction), nan, result);
  result = f.select(compare(arith::CmpFPredicate::UNO, x, y), nan, result);
  Value isOne = f.b.create<arith::OrIOp>(f.loc, compare(arith::CmpFPredicate::OEQ, x, f.constant(1)),
                                         compare(arith::CmpFPredicate::OEQ, y, f.constant(0)));
  return f.select(isOne, f.constant(1), result);
}

namespace {

struct PowExpansion : OpRewritePattern<math::PowFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::PowFOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    Formula f{rewriter, op.getLoc(), op.getType()};
    APFloat exponent(0.0f);
    bool isSquare = matchPattern(op.getRhs(), m_ConstantFloat(&exponent)) && exponent.convertToDouble() == 2;
    rewriter.replaceOp(op, isSquare ? f.mul(op.getLhs(), op.getLhs()) : pow(f, op.getLhs(), op.getRhs()));
    return success();
  }
};

} // namespace

void populateMathFunctionPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<Expansion<math::TanhOp>>(context, tanh);
  patterns.add<Expansion<math::ErfOp>>(context, erf);
  patterns.add<Expansion<math::SinOp>>(context, sin);
  patterns.add<Expansion<math::CosOp>>(context, cos);
  patterns.add<PowExpansion>(context, /*benefit=*/10);
}

} // namespace sluice::cpu
